import { existsSync } from "node:fs";
import type { Test } from "tap";

/** Whether that file or folder of the shared data is there; where it is not, the test counts a skip that says so. */
export function hasSharedData(t: Pick<Test, "pass">, path: string): boolean {
  const isThere = existsSync(path);
  if (!isThere) t.pass(`what is of ${path}`, { skip: `${path} is absent` });
  return isThere;
}
