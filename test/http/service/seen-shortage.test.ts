import t from "tap";
import type { ServiceLog } from "../../../http/log/service-log.js";
import type { IncomingRequest } from "../../../http/requests/incoming-request.js";
import { RequestPipeline } from "../../../http/requests/request-pipeline.js";
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

t.test("a shortage anywhere in an answer makes it 503, which can be tried again, and is told to health", (t) => {
  const seen: unknown[] = [];
  const onShortage = (error: unknown) => seen.push(error);
  const log = { isLevelEnabled: () => false } as unknown as ServiceLog;
  const pipeline = new RequestPipeline({ routes: [], baseUrl: undefined, log, onShortage });
  const errors = ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ENOBUFS", "no_thread"].map((code) =>
    Object.assign(new Error(code), { code }),
  );
  errors.push(Object.assign(new RangeError("Array buffer allocation failed"), { code: undefined }) as never);
  for (const error of errors) {
    const { status, headers, body } = pipeline.failure(error, {} as IncomingRequest, "t");
    t.same([status, headers?.[0]?.[0]], [503, "Retry-After"], error.message);
    t.match(JSON.parse(Buffer.from(body as Uint8Array).toString()), { code: "unavailable", retryable: true });
  }
  t.same(seen, errors);
  t.end();
});
