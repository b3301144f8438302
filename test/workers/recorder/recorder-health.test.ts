import t from "tap";
import type { ComponentRow } from "../../../core/health.js";
import { RecoveryReportBuilder } from "../../../storage/recovery/recovery-report.js";
import { type HealthSources, RecorderHealth } from "../../../workers/recorder/status/recorder-health.js";

t.test("the dispatcher is degraded while deliveries wait to be read, down when it has ended", async (t) => {
  let fault: string | null = null;
  let failure: string | null = null;
  const sent: ComponentRow[] = [];
  const sources = {
    ...{ recovery: new RecoveryReportBuilder().report, openedAt: "", earlierDamage: [], damagedRuns: 0 },
    ...{ logFailure: () => null, disk: () => ({ status: "healthy", detail: null }), recorderFailure: () => null },
    ...{
      retentionFault: () => null,
      logFault: () => null,
      clockFault: () => null,
      shortage: () => null,
      placeFault: () => null,
      sharedNames: () => null,
      producerNames: () => 0,
      ahead: () => ({ bytes: 0, isBehind: false }),
      connections: () => 0,
    },
    ...{ isProcessingBehind: () => false, removed: () => ({ runs: 0, files: 0, bytes: 0 }) },
    ...{ dispatcherFailure: () => failure, dispatcherFault: () => fault },
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
