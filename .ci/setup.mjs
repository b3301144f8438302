// Installs the locked dependencies when, and only when, node_modules does not already hold them, so that a fresh clone needs nothing else and
// a warm one starts at once. `product` installs what compiles and runs the service; without it come the tools of tests and benchmarks too.
import "../http/check-node.mjs";

// Loaded behind the check, since an old Node may not be able to read it.
void import("./install.mjs").then(({ install }) => install(process.argv[2] === "product" ? "product" : "all"));
