import t from "tap";
import type { ComponentRow } from "../../../core/health.js";
import { RecoveryReportBuilder } from "../../../storage/recovery/recovery-report.js";
import { type HealthSources, RecorderHealth } from "../../../workers/recorder/status/recorder-health.js";

t.test("the dispatcher is degraded while deliveries wait to be read, down when it has ended", async (t) => {
  let fault: string | null = null;
  let failure: string | null = null;
  const sent: ComponentRow[] = [];
  const log = { failure: null, recovery: new RecoveryReportBuilder().report };
  const sources = {
    opened: { log, openedAt: "", earlierDamage: [], damagedRuns: 0, state: { producers: new Map() } },
    guards: {
      room: { row: { status: "healthy", detail: null } },
      shortage: { fault: null },
      watch: { logFault: null, placeFault: null },
    },
    status: { failure: null },
    retention: { fault: null, removed: { runs: 0, files: 0, bytes: 0 } },
    webhooks: {
      get dispatcherFailure() {
        return failure;
      },
      get dispatcherFault() {
        return fault;
      },
    },
    stream: { aheadBytes: 0, isBehind: false },
    link: { server: { connectionCount: 0 }, sharedNamesFault: null },
    clockFault: () => null,
  } as unknown as HealthSources;
  const send = (rows: ComponentRow[]) => sent.push(...rows.filter(({ key }) => key === "dispatcher"));
  const health = new RecorderHealth(sources, send);
  const update = (now: typeof fault, ended: typeof failure): ComponentRow | undefined => {
    [fault, failure] = [now, ended];
    health.update();
    return sent.at(-1);
  };
  t.match(update(null, null), { status: "healthy", detail: null });
  t.match(update("since …", null), { status: "degraded", detail: "since …" });
  t.match(update(null, null), { status: "healthy", detail: null });
  t.match(update("since …", "ended"), { status: "down", detail: "ended" });
});
