import { execFileSync } from "node:child_process";
import { dirname } from "node:path";
import t, { type Test } from "tap";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { isFullSize } from "../../helpers/test-size.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

/** Paths of other Node binaries, separated by colons; `.ci/run` installs some (.ci/other-nodes). */
const BINARIES = (process.env.TEST_NODE_BINARIES ?? "").split(":").filter((path) => path !== "");

/** The loader of a C library that is newer than the system's; `.ci/run` fetches one (.ci/newer-libc.sh). */
const LOADER = process.env.TEST_NEWER_LIBC_LOADER ?? "";

const versionOf = (binary: string) => execFileSync(binary, ["--version"], { encoding: "utf8" }).trim();

/** The republished build: for Node 20, 22 and 24, on a newer C library. */
const NEWER_UWS = "uWebSockets.js 20.56.0";

async function checkAnswers(t: Test, service: ServiceProcess, name: string): Promise<void> {
  for (const path of ["/system/version", "/runs", "/health", "/openapi.json", "/metrics", "/docs"]) {
    const response = await rawRequest(service.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    t.equal(response?.status, 200, `${name}: ${path}`);
  }
}

const frontOf = ({ stdout }: ServiceProcess) => / \(front: (.*)\)$/m.exec(stdout)?.[1] ?? "";

t.test("every newer Node serves by itself, on uWebSockets.js where a build of it loads", async (t) => {
  if (BINARIES.length === 0) {
    t.pass("", { skip: "TEST_NODE_BINARIES names no other Node" });
    return;
  }
  for (const binary of BINARIES) {
    const version = versionOf(binary);
    const service = await ServiceProcess.startFor(t, {
      args: ["serve"],
      binary,
      environment: { INSPECTION_FRONT: "auto" },
    });
    const front = frontOf(service);
    t.comment(`${version}: ${front}`);
    await checkAnswers(t, service, version);
    t.equal((await service.end()).code, 0, `${version}: ends cleanly`);
    const serve = ["serve", "--data", service.dataDirectory, "--port", "0", "--front"];
    if (front === NEWER_UWS) continue;
    t.match(front, /^node:http; no uWebSockets\.js: it (needs glibc|has no binary for Node) /, version);
    if (binary !== BINARIES[0] && !isFullSize) continue;
    const uws = await runCommand([...serve, "uws"], {}, binary);
    t.match(uws, { code: 1, stdout: "" }, `${version}: what is insisted on and cannot be had`);
    const reason = uws.stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
    t.equal(reason.length, 1, `${version}: in one line`);
    t.match(
      reason[0],
      /--front uws: no build of uWebSockets\.js loads on .*; use --front node, which does not need it$/,
      version,
    );
  }
});

t.test(
  "started by the loader of a newer C library, the service has the newer build, and the processes it needs",
  async (t) => {
    if (LOADER === "") {
      t.pass("", { skip: "TEST_NEWER_LIBC_LOADER names no loader" });
      return;
    }
    // `.ci/run` also runs the front's own tests on a newer Node with this library.
    for (const node of [process.execPath, ...(isFullSize ? BINARIES : [])]) {
      const version = versionOf(node);
      const service = await ServiceProcess.startFor(t, {
        binary: LOADER,
        script: "--library-path",
        args: [dirname(LOADER), node, "dist/http/main.js", "serve"],
        environment: { INSPECTION_FRONT: "auto" },
      });
      const isBuilt = /^v(20|22|24|25)\./.test(version);
      const front = frontOf(service);
      if (isBuilt) t.equal(front, NEWER_UWS, version);
      else t.match(front, /^node:http; no uWebSockets\.js: it has no binary for Node /, version);
      await checkAnswers(t, service, version);
      // A name is looked up in a process of its own, which is started in the same way.
      const receiver = await receiverFor(t);
      const client = new ContractClient(t, service.port);
      const url = receiver.url.replace("127.0.0.1", "localhost");
      const hook = await client.post("/webhooks", {
        body: { name: "mes", url, subscribed_events: ["WebhookTest"], delivery_timeout_seconds: 10 },
      });
      const tested = await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: hook.id } });
      t.match(tested, { delivered: true }, `${version}: ${JSON.stringify(tested)}`);
      t.comment(`${version} on ${LOADER}: ${front}`);
      t.equal((await service.end()).code, 0, `${version}: ends cleanly`);
    }
  },
);
