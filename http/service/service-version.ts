import { createRequire } from "node:module";

/** The release of this build: package.json's version, which is two folders above the compiled file. */
export const SERVICE_VERSION: string = (createRequire(import.meta.url)("../../../package.json") as { version: string })
  .version;
