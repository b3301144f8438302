import t from "tap";
import { SeenShortage } from "../../../http/service/seen-shortage.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";

t.test("health tells of reads that were refused, since the first, until half a minute after the last", async (t) => {
  let nowUs = Date.UTC(2026, 10, 26) * 1_000;
  const seen = new SeenShortage(() => nowUs);
  seen.note(new FileSystemError("EIO", "read", "meta"));
  seen.note(new TypeError("x"));
  seen.note(undefined);
  t.equal(seen.detail, null, "another error is none");
  seen.note(new FileSystemError("EMFILE", "open", "meta/1.seg"));
  nowUs += 20_000_000;
  seen.note(new FileSystemError("ENOMEM", "read", "meta/2.seg"));
  nowUs += 30_000_000;
  const first = "the process has no file descriptor left (open meta/1.seg: EMFILE)";
  t.equal(seen.detail, `since 2026-11-26T00:00:00.000Z: some reads are refused: ${first}`);
  nowUs += 1;
  t.equal(seen.detail, null);
  seen.note(new FileSystemError("ENFILE", "open", "meta/3.seg"));
  t.match(seen.detail, /^since 2026-11-26T00:00:50.000Z: .*the machine has no file descriptor left/);
});
