import { execFileSync } from "node:child_process";
import t from "tap";
import { rawRequest } from "../helpers/raw-http.js";
import { runCommand, ServiceProcess } from "../helpers/service-process.js";

/** Paths of other Node binaries, separated by colons; `.ci/run` installs some (.ci/other-nodes). */
const BINARIES = (process.env.TEST_NODE_BINARIES ?? "").split(":").filter((path) => path !== "");

t.test("newer Node versions serve with --front node, and say so where uWebSockets.js does not load", async (t) => {
  if (BINARIES.length === 0) {
    t.pass("", { skip: "TEST_NODE_BINARIES names no other Node" });
    return;
  }
  for (const binary of BINARIES) {
    const version = execFileSync(binary, ["--version"], { encoding: "utf8" }).trim();
    const service = await ServiceProcess.start({ args: ["serve", "--front", "node"], binary });
    t.teardown(() => service.dispose());
    for (const path of ["/system/version", "/runs", "/health", "/openapi.json", "/metrics", "/docs"]) {
      const response = await rawRequest(service.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      t.equal(response?.status, 200, `${version}: ${path}`);
    }
    t.equal((await service.end()).code, 0, `${version}: ends cleanly`);
    const uws = await runCommand(["serve", "--data", service.dataDirectory, "--port", "0"], {}, binary);
    t.equal(uws.code, 1, version);
    t.match(uws.stderr, /--front node/, version);
    t.comment(version);
  }
});
