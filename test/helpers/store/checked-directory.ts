import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { isChangeRecordType } from "../../../storage/records/record-index.js";
import { type CheckResult, checkStore } from "../../../storage/repair/check-store.js";
import { RecordVerifier } from "../../../storage/repair/record-verifier.js";

/** The shipped check, of a store that nobody has open. */
export async function checkDirectory(directory: string): Promise<CheckResult> {
  const dataDirectory = await openDataDirectory({ path: directory, creates: false });
  const result = await checkStore({
    dataDirectory,
    understandsType: isChangeRecordType,
    ...new RecordVerifier().inspection,
  });
  await dataDirectory.release();
  return result;
}
