import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What dpkg runs, in http/package. */
const SCRIPTS = ["postinst", "prerm", "postrm"];

function sizeKib(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + Math.ceil(statSync(join(parentPath, name)).size / 1024), 0);
}

/** Makes the Debian package of the files in `root`. @returns its path */
export function makeDebianPackage({ root, name, version, architecture, description, target }) {
  const control = [
    `Package: ${name}`,
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    "Maintainer: Inspection Results Service <inspection-service@localhost>",
    "Section: misc",
    "Priority: optional",
    // What http/check-node.mjs asks for. Debian's own is new enough from Debian 13 on.
    "Depends: adduser, nodejs (>= 20.19)",
    `Installed-Size: ${sizeKib(root)}`,
    "Description: results of an inspection cell over HTTP, and to webhooks",
    ` ${description}`,
  ];
  const folder = join(root, "DEBIAN");
  mkdirSync(folder);
  writeFileSync(join(folder, "control"), `${control.join("\n")}\n`);
  writeFileSync(join(folder, "conffiles"), `/etc/${name}/config.json\n`);
  for (const script of SCRIPTS) {
    copyFileSync(join("http/package", script), join(folder, script));
    chmodSync(join(folder, script), 0o755);
  }
  const path = join(target, `${name}_${version}_${architecture}.deb`);
  // DPKG_DEB_COMPRESSOR_TYPE and DPKG_DEB_COMPRESSOR_LEVEL say how it is compressed.
  execFileSync("dpkg-deb", ["--root-owner-group", "--build", root, path], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  return path;
}
