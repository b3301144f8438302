import { spawnSync } from "node:child_process";
import t from "tap";

t.test("without the native binary it refuses and names the way out, and prints nothing of its own", async (t) => {
  const script = `
    import("./dist/http/uws-server.js").then(({ startUwsServer }) => startUwsServer({ host: "127.0.0.1", port: 0 }))
      .then(() => console.log("started"), (error) => console.log(error.name + ": " + error.message));`;
  const hidden = `
    const { Module } = require("node:module");
    Module._extensions[".node"] = () => { throw new Error("invalid ELF header"); };`;
  const cases = [
    spawnSync(process.execPath, ["-e", script], {
      env: { ...process.env, UWS_USE_FALLBACK: "1" },
      encoding: "utf8",
      timeout: 30_000,
    }),
    spawnSync(process.execPath, ["-e", hidden + script], { encoding: "utf8", timeout: 30_000 }),
  ];
  for (const { stdout, stderr } of cases) {
    t.match(stdout, /^HttpServerError: .*--front node/);
    t.equal(stdout.trim().split("\n").length, 1);
    t.equal(stderr, "");
  }
});
