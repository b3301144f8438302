// `npm run package`: makes a Debian package, a tarball and an SBOM of what is built, for this machine's architecture, in dist/packages.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { commandLine } from "../../dist/http/commands/command-line.js";
import { makeDebianPackage } from "./debian-package.mjs";
import { manPage } from "./man-page.mjs";
import { copyPackages, licences, productionLock } from "./production-tree.mjs";

const TARGET = "dist/packages";
const NAME = "inspection-service";
/** Names of Debian and of container engines, which agree on these two. */
const ARCHITECTURES = { x64: "amd64", arm64: "arm64" };

const readJson = (path) => JSON.parse(readFileSync(path, "utf8"));

function npm(args, options = {}) {
  return execFileSync("npm", args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
}

/** The files of `npm pack`, with the packages that they need. @returns the lock of these packages */
function copyProduct(folder) {
  // npm 12 has packages by their names where others have a list.
  const [packed] = Object.values(JSON.parse(npm(["pack", "--dry-run", "--ignore-scripts", "--json"])));
  for (const { path } of packed.files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(path, join(folder, path));
  }
  const manifest = readJson("package.json");
  const lock = productionLock(readJson("package-lock.json"), manifest);
  copyPackages(lock, folder, process.arch);
  const { scripts, devDependencies, workspaces, overrides, ...kept } = manifest;
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(kept, null, 2)}\n`);
  writeFileSync(join(folder, "package-lock.json"), `${JSON.stringify(lock, null, 2)}\n`);
  return lock;
}

/** Where the files lie on a system, for the Debian package. */
function layOut(product, root, { version, lock }) {
  const place = (path, text) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const library = `usr/lib/${NAME}`;
  cpSync(product, join(root, library), { recursive: true });
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  symlinkSync(`../lib/${NAME}/http/inspection-service.mjs`, join(root, "usr/bin", NAME));
  place(`usr/lib/systemd/system/${NAME}.service`, readFileSync(`http/package/${NAME}.service`));
  place(
    `usr/share/man/man1/${NAME}.1.gz`,
    gzipSync(readFileSync(join(product, `http/package/${NAME}.1`)), { level: 9 }),
  );
  place(`etc/${NAME}/config.json`, readFileSync("http/package/config.json"));
  const documents = `usr/share/doc/${NAME}`;
  place(`${documents}/changelog.gz`, gzipSync(readFileSync("CHANGELOG.md"), { level: 9 }));
  const others = licences(lock).map((line) => `  ${line}`);
  const copyright = [readFileSync("LICENSE", "utf8"), `Below /${library}/node_modules, each with its own text:\n`];
  place(`${documents}/copyright`, `${[...copyright, ...others].join("\n")}\n`);
  symlinkSync(`../../../lib/${NAME}/http/package/README.md`, join(root, documents, "README.md"));
  return { root, name: NAME, version };
}

function main() {
  const architecture = ARCHITECTURES[process.arch];
  if (process.platform !== "linux" || architecture === undefined) {
    throw new Error(`packages are made on Linux, on x64 and arm64; this is ${process.platform}, ${process.arch}`);
  }
  const { version } = readJson("package.json");
  rmSync(TARGET, { recursive: true, force: true });
  // What the umask of whoever builds takes away would be missing on the machines of all others.
  process.umask(0o022);
  const product = join(TARGET, "tree", NAME);
  mkdirSync(product, { recursive: true });
  const lock = copyProduct(product);
  cpSync("http/package", join(product, "http/package"), { recursive: true });
  const page = manPage(commandLine(), version, new Date().toISOString().slice(0, 10));
  writeFileSync(join(product, "http/package", `${NAME}.1`), page);
  chmodSync(join(product, "http/inspection-service.mjs"), 0o755);

  const sbom = npm(["sbom", "--sbom-format=cyclonedx", "--package-lock-only"], { cwd: product });
  writeFileSync(join(TARGET, `${NAME}_${version}_${architecture}.cdx.json`), sbom);
  const tarball = join(TARGET, `${NAME}_${version}_linux_${architecture}.tar.gz`);
  execFileSync("tar", ["-C", dirname(product), "--owner=0", "--group=0", "--numeric-owner", "-czf", tarball, NAME]);
  console.log(tarball);
  const root = join(TARGET, "tree", "debian");
  const { description } = readJson("package.json");
  console.log(
    makeDebianPackage({ ...layOut(product, root, { version, lock }), architecture, description, target: TARGET }),
  );
  rmSync(join(TARGET, "tree"), { recursive: true });
}

main();
