// Preloaded into each test file. tap tells by async_hooks which test an uncaught error belongs to, and with them every promise of the file
// costs several times as much. Without them such an error ends the file, which fails, with the error's stack on stderr.
const hooks = require("node:async_hooks");
const { syncBuiltinESMExports } = require("node:module");

const none = { enable: () => none, disable: () => none };
hooks.createHook = () => none;
syncBuiltinESMExports();
