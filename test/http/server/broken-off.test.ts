import t from "tap";
import { ServiceError } from "../../../core/service-errors.js";
import type { ServiceLog } from "../../../http/log/service-log.js";
import type { IncomingRequest } from "../../../http/requests/incoming-request.js";
import { RequestPipeline } from "../../../http/requests/request-pipeline.js";
import { StorageError } from "../../../storage/storage-error.js";

t.test("a body that breaks off is an error in the log, unless its capture was removed meanwhile", (t) => {
  const lines: [level: string, position: unknown][] = [];
  const note = (level: string) => (fields: { position?: unknown }) => lines.push([level, fields.position]);
  const log = { isLevelEnabled: () => false, error: note("error"), info: note("info") } as unknown as ServiceLog;
  const damage: unknown[] = [];
  const onReadDamage = (error: unknown) => damage.push(error);
  const pipeline = new RequestPipeline({ routes: [], baseUrl: undefined, log, onReadDamage });
  const request = { method: "GET", path: "/runs/x/files/y", remoteAddress: () => "" } as IncomingRequest;
  const damaged = new StorageError("capture_damaged", "a flipped bit");
  pipeline.brokenOff(new ServiceError("unavailable", "the capture was removed while it was read"), request, "t", 1);
  pipeline.brokenOff(damaged, request, "t", 2);
  pipeline.brokenOff(new Error("task_failed: a bug"), request, "t", 3);
  t.same(lines, [
    ["info", 1],
    ["error", 2],
    ["error", 3],
  ]);
  t.same(damage, [damaged]);
  t.end();
});
