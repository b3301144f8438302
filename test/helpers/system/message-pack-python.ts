import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { pythonWith } from "../captures/python-checker.js";
import { unpackedDebianPackage } from "./debian-package.js";

export interface Python {
  binary: string;
  environment: NodeJS.ProcessEnv;
}

/** Modules beside a script would be compiled into its folder. */
const quiet = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };

/** A Python that has msgpack, if need be that of a Debian package which is only unpacked. */
export function pythonWithMessagePack(): Python | { missing: string } {
  const installed = pythonWith("msgpack");
  if (installed !== undefined) return { binary: installed, environment: quiet };
  const unpacked = unpackedDebianPackage("python3-msgpack");
  if ("missing" in unpacked) return unpacked;
  const environment = { ...quiet, PYTHONPATH: join(unpacked.root, "usr/lib/python3/dist-packages") };
  const [binary] = ["/usr/bin/python3", "python3"].filter(
    (name) => spawnSync(name, ["-c", "import msgpack"], { env: environment }).status === 0,
  );
  return binary === undefined ? { missing: "no Python takes Debian's msgpack" } : { binary, environment };
}
