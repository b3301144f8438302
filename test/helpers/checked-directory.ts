import { RecordVerifier } from "../../http/record-verifier.js";
import { type CheckResult, checkStore } from "../../storage/check-store.js";
import { openDataDirectory } from "../../storage/data-directory.js";
import { isChangeRecordType } from "../../storage/record-index.js";

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
