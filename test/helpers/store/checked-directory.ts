import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { type CheckResult, checkStore } from "../../../storage/repair/check-store.js";
import { consistentInspection } from "../consistency/record-consistency.js";

/** The shipped check, of a store that nobody has open. Throws if records contradict one another. */
export async function checkDirectory(directory: string): Promise<CheckResult> {
  const dataDirectory = await openDataDirectory({ path: directory, creates: false });
  const { inspection, assertConsistent } = consistentInspection();
  const result = await checkStore({
    dataDirectory,
    ...inspection,
  });
  assertConsistent(result);
  await dataDirectory.release();
  return result;
}
