import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

const TIMEOUT_MS = 180_000;

/**
 * The files of a Debian package, fetched by apt-get and unpacked into dist, once. Nothing is installed. Some packages start a server when they
 * are installed, and some checkers are too small to be installed for.
 *
 * @returns the folder that stands for the root; or why it cannot be had, as a sentence for `skip`
 */
export function unpackedDebianPackage(name: string): { root: string } | { missing: string } {
  const root = resolve("dist/debian-packages", name);
  if (existsSync(root)) return { root };
  // Two tests may want the same package at the same time.
  const folder = `${root}.${process.pid}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const run = (command: string, ...args: string[]): boolean =>
    spawnSync(command, args, { cwd: folder, timeout: TIMEOUT_MS }).status === 0;
  if (!run("apt-get", "download", name)) return { missing: `the Debian package ${name} cannot be fetched` };
  const [file] = readdirSync(folder);
  if (file === undefined || !run("dpkg-deb", "-x", join(folder, file), join(folder, "root"))) {
    return { missing: `the Debian package ${name} cannot be unpacked` };
  }
  if (!existsSync(root)) renameSync(join(folder, "root"), root);
  rmSync(folder, { recursive: true });
  return { root };
}
