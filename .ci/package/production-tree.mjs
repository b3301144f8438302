// The packages that the service needs at run time, as the lock file has them: what was tested is what is packed.
import { cpSync, existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** The binaries of uWebSockets.js for all platforms and versions of Node; the first one that is supported has 115. */
const BINARY = /^uws_([a-z0-9]+)_([a-z0-9]+)_(\d+)\.node$/;
const LEAST_ABI = 115;

/** Where a package finds another: in the nearest folder above it. Undefined if it is optional and not in the lock. */
function located(packages, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules") - 1))) {
    const path = folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === "") return undefined;
  }
}

/** A lock file of the product alone: its dependencies, theirs, and so on. */
export function productionLock(lock, manifest) {
  const root = { name: manifest.name, version: manifest.version, license: manifest.license };
  const { dependencies, optionalDependencies } = manifest;
  const found = { "": { ...root, dependencies, optionalDependencies } };
  const queue = [["", found[""]]];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const [from, { dependencies: needed = {}, optionalDependencies: optional = {} }] = next;
    for (const name of Object.keys({ ...needed, ...optional })) {
      const path = located(lock.packages, from, name);
      // What is optional may be missing: for another platform, or where the registry lacks it.
      const isThere = path !== undefined && existsSync(path);
      if (!isThere && needed[name] !== undefined && optional[name] === undefined)
        throw new Error(`${name} is not installed`);
      if (!isThere || found[path] !== undefined) continue;
      found[path] = lock.packages[path];
      queue.push([path, found[path]]);
    }
  }
  return { name: manifest.name, version: manifest.version, lockfileVersion: 3, requires: true, packages: found };
}

function fits(path, arch) {
  const [, platform, binaryArch, abi] = BINARY.exec(basename(path)) ?? [];
  return platform === undefined || (platform === "linux" && binaryArch === arch && Number(abi) >= LEAST_ABI);
}

/** Copies the packages of the lock into `folder`, without binaries that this machine cannot load. */
export function copyPackages(lock, folder, arch) {
  for (const path of Object.keys(lock.packages)) {
    if (path === "") continue;
    // Packages within packages are in the lock themselves, if they are needed.
    const filter = (source) => fits(source, arch) && !source.slice(path.length).includes("/node_modules");
    cpSync(path, join(folder, path), { recursive: true, filter });
  }
}

/** @returns for each package its name, version and licence, sorted */
export function licences(lock) {
  return Object.entries(lock.packages)
    .filter(([path]) => path !== "")
    .map(([path, { version, license }]) => {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      return `${name} ${version}: ${license ?? JSON.parse(readFileSync(`${path}/package.json`, "utf8")).license}`;
    })
    .sort();
}
