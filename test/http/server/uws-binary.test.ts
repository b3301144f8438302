import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { buildLabel, fullReason, shortReason, type UwsMiss, type UwsModule } from "../../../http/server/uws-binary.js";
import { UWS_HERE } from "../../helpers/http/fronts-here.js";
import { listOf } from "../../helpers/list-of.js";

/** The binary that packages carry for this machine and Node. */
const BINARY = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;

/** Node's way to load native binaries, replaced. */
const binariesAre = (body: string) =>
  `require("node:module").Module._extensions[".node"] = (module, path) => { ${body} };`;

const NO_GLIBC = binariesAre(
  "throw new Error(`/lib/libc.so.6: version \\`GLIBC_9.99' not found (required by x)`, { cause: path });",
);

/** What the first front that serves says of itself, or the error. */
function startedAs(choice: string, before: string, environment: Record<string, string> = {}) {
  const script = `${before}
    import("./dist/http/server/choose-server.js")
      .then(({ startFront }) => startFront(${JSON.stringify(choice)}, {
        host: "127.0.0.1", port: 0, pipeline: { socketPaths: [], drain() {} }, log: { info: (text) => console.log("log: " + text) },
      }))
      .then((server) => server.close(0).then(() => console.log(server.label)))
      .catch((error) => console.log(error.name + ": " + error.message));`;
  const ended = spawnSync(process.execPath, ["-e", script], {
    env: { ...process.env, ...environment },
    encoding: "utf8",
    timeout: 60_000,
  });
  t.equal(ended.stderr, "");
  return ended.stdout.trim().split("\n");
}

t.test(
  "where no binary loads, --front uws is an error in one line that says why, and auto serves on node:http",
  async (t) => {
    const [error, ...more] = startedAs("uws", NO_GLIBC);
    t.match(
      error,
      /^HttpServerError: --front uws: no build of uWebSockets\.js loads on .*; use --front node, which does not need it$/,
    );
    t.match(
      error,
      /@btc-vision\/uwebsockets\.js 20\.56\.0: it (needs glibc 9\.99, this system has |has no binary for Node )/,
    );
    t.match(error, /@trufflesuite\/uws-js-unofficial 20\.30\.0-unofficial\.0: /);
    t.same(more, []);
    // The replacement in JavaScript of the build of 2023 is asked for by this variable: it must not serve.
    const [log, label, ...rest] = startedAs("auto", NO_GLIBC, { UWS_USE_FALLBACK: "1" });
    t.match(log, /^log: no build of uWebSockets\.js loads .*: serving with node:http instead$/);
    t.match(label, /^node:http; no uWebSockets\.js: it (needs glibc 9\.99, this system has |has no binary for Node )/);
    t.same(rest, []);
    t.same(startedAs("node", NO_GLIBC), ["node:http"]);
  },
);

t.test("auto takes what loads; a build that is asked for by name is taken, and no other", async (t) => {
  if (UWS_HERE.length === 0) {
    t.pass("", { skip: "no build of uWebSockets.js loads here" });
    return;
  }
  for (const choice of ["auto", "uws"])
    t.match(startedAs(choice, ""), listOf(new RegExp(`^uWebSockets\\.js ${UWS_HERE[0]?.version}(; not |$)`)), choice);
  for (const { packageName, version } of UWS_HERE) {
    t.same(startedAs("uws", "", { UWS_PACKAGE: packageName }), [`uWebSockets.js ${version}`]);
  }
  t.match(
    startedAs("uws", "", { UWS_PACKAGE: "nonsense" }),
    listOf(/: no build .* \(nonsense: no such package is known\)/),
  );
});

t.test("the project's own release goes before the packages, once it is installed", async (t) => {
  // As npm lays it out: the service is one package, the release another, which the operator added.
  const folder = t.testdir({
    node_modules: {
      service: { "package.json": '{"type":"module"}', http: {} },
      "uWebSockets.js": {
        "package.json": JSON.stringify({ name: "uWebSockets.js", version: "20.99.0", main: "uws.js" }),
        "uws.js": "throw new Error('only the binary is loaded');",
        [BINARY]: "",
      },
    },
  });
  cpSync("dist/http/server/uws-binary.js", join(folder, "node_modules/service/http/uws-binary.js"));
  const script = `${binariesAre("module.exports = { from: path };")}
    import(${JSON.stringify(join(folder, "node_modules/service/http/uws-binary.js"))})
      .then(({ findUws }) => console.log(JSON.stringify(findUws())));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8", timeout: 60_000 });
  t.equal(stderr, "");
  t.match(JSON.parse(stdout), {
    packageName: "uWebSockets.js",
    version: "20.99.0",
    uws: { from: /uWebSockets\.js\/uws_/ },
  });
});

t.test("reasons: of the newest that is installed in short, of all of them in full", (t) => {
  const own: UwsMiss = { packageName: "own", version: undefined, reason: "not installed" };
  const newer: UwsMiss = { packageName: "newer", version: "2.0.0", reason: "it is too new" };
  const older: UwsMiss = { packageName: "older", version: "1.0.0", reason: "it is too old" };
  t.equal(shortReason([own, newer, older]), "it is too new");
  t.equal(shortReason([own]), "it is not installed");
  const build = { uws: {} as UwsModule, packageName: "oldest", version: "0.9.0" };
  t.equal(buildLabel({ ...build, misses: [own] }), "uWebSockets.js 0.9.0");
  t.equal(buildLabel({ ...build, misses: [own, newer] }), "uWebSockets.js 0.9.0; not 2.0.0: it is too new");
  t.equal(
    fullReason([own, newer, older]),
    "own: not installed; newer 2.0.0: it is too new; older 1.0.0: it is too old",
  );
  t.end();
});

t.test("what README.md says of the binaries is what the lock file pins", (t) => {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    packages: Record<string, { version: string; integrity: string; license: string; optional?: boolean }>;
  };
  const text = readFileSync("http/README.md", "utf8");
  for (const name of ["@btc-vision/uwebsockets.js", "@trufflesuite/uws-js-unofficial"]) {
    const pinned = packages[`node_modules/${name}`];
    t.match(pinned, { license: "Apache-2.0", optional: true, integrity: /^sha512-/ });
    t.ok(text.includes(`\`${name}\` ${pinned?.version}`), name);
  }
  const commitFile = "node_modules/@btc-vision/uwebsockets.js/source_commit";
  if (existsSync(commitFile)) t.ok(text.includes(readFileSync(commitFile, "utf8").trim()), "the commit that was built");
  else t.pass("the commit that was built", { skip: "the optional package is not installed" });
  t.end();
});
