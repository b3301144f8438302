import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkedCopy, recordsOfRuns } from "../../helpers/store/backup-state.js";
import { BusyCell } from "../../helpers/store/busy-cell.js";
import { hashOfFolder } from "../../helpers/store/folder-content.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 11);
const ROUNDS = sized(3, 200);
/** Each store grows by what comes during its backups. A new one now and then keeps their length, however slow the machine is. */
const ROUNDS_OF_STORE = 5;
const SCRIPT = new URL("../../helpers/process/small-segments-service.js", import.meta.url).pathname;
/** Some hundred runs: retention removes captures during each backup, but not all of them. */
const RETAIN_BYTES = "1000000";
/** Records of a run of the busy cell that were acknowledged, at least. Formats and its end come later. */
const RECORDS_OF_RUN = 7;

interface Counts {
  rounds: number;
  complete: number;
  failed: number;
  killed: number;
  services: number;
  runs: number;
  longestMs: number;
}

t.test("backups under load, with kill -9 of service or backup: a complete one is whole and has all", async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  const counts = { rounds: 0, complete: 0, failed: 0, killed: 0, services: 0, runs: 0, longestMs: 0 };
  for (let from = 0; from < ROUNDS; from += ROUNDS_OF_STORE) {
    const rounds = Math.min(ROUNDS_OF_STORE, ROUNDS - from);
    await t.test(`a store, from round ${from}`, (t) => backUpAgainAndAgain(t, random, rounds, counts));
  }
  t.comment(JSON.stringify(counts));
  t.ok(counts.complete > 0);
});

async function backUpAgainAndAgain(t: Test, random: Random, rounds: number, counts: Counts): Promise<void> {
  const data = temporaryDirectory(t);
  const to = join(temporaryDirectory(t), "backup");
  const startOptions = { script: SCRIPT, dataDirectory: data, environment: { RETAIN_BYTES } };
  let service = await ServiceProcess.start(startOptions);
  t.teardown(() => service.dispose());
  const cell = new BusyCell(service.cellSocketPath);
  t.teardown(() => cell.destroy());
  cell.begin();
  await cell.untilMore(10);

  /** Runs that the last complete backup must have. */
  let promised: string[] = [];
  let longestMs = 1_000;
  let content = "";
  for (let round = 0; round < rounds; round++) {
    counts.rounds++;
    if (content !== "") t.equal(hashOfFolder(to), content, `round ${round}: the service changed nothing in the backup`);
    const before = [...cell.acknowledgedRuns];
    if (round > 0) cell.begin();
    const beganMs = performance.now();
    const child = spawn(process.execPath, ["dist/http/main.js", "backup", "--data", data, "--to", to]);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    // The first one goes undisturbed, and shows how long a backup takes.
    const victim = round === 0 ? "nobody" : random.pick(["backup", "backup", "service", "both", "nobody"]);
    if (victim !== "nobody") await Promise.race([ended, pause(random.integer(0, Math.ceil(longestMs)))]);
    if (victim === "backup" || victim === "both") child.kill("SIGKILL");
    if (victim === "service" || victim === "both") {
      await service.end("SIGKILL");
      service = await ServiceProcess.start(startOptions);
      counts.services++;
    }
    const code = await ended;
    const live = await checkedCopy(data);
    t.ok(live.ok, `round ${round}, the store while it is served: ${JSON.stringify(live.findings)}`);
    // Else the store would grow while its copy is checked, and each round would take longer than the one before.
    await cell.rest();
    if (code === 0) {
      counts.complete++;
      promised = before;
      longestMs = Math.max(longestMs, performance.now() - beganMs);
    } else if (code === null) {
      counts.killed++;
    } else {
      counts.failed++;
      t.comment(`round ${round}, ${victim}: ${said.trim()}`);
    }
    if (victim === "nobody") t.equal(code, 0, said);

    // A kill within the last step leaves the backup of before under its other name.
    const kept = existsSync(to) ? to : `${to}.previous`;
    const { ok, findings } = await checkedCopy(kept);
    t.ok(ok, `round ${round}, ${victim}: ${JSON.stringify(findings)}`);
    const runs = await recordsOfRuns(kept);
    const lacking = promised.filter((id) => (runs.get(id) ?? 0) < RECORDS_OF_RUN);
    t.same(lacking, [], `round ${round}: all that was acknowledged before it began`);
    content = existsSync(to) ? hashOfFolder(to) : "";
  }
  await cell.stop();
  counts.runs += cell.acknowledgedRuns.length;
  counts.longestMs = Math.max(counts.longestMs, Math.round(longestMs));
}
