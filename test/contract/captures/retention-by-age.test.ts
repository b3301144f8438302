import { rmSync } from "node:fs";
import t from "tap";
import { runWithCaptures } from "../../helpers/captures/kept-captures.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { until } from "../../helpers/until.js";

const HOUR_US = 3_600e6;

/** A store with a run that ended that long ago for each, the longest first. */
async function storeOf(t: Parameters<typeof temporaryDirectory>[0], hoursAgo: readonly number[]) {
  const directory = temporaryDirectory(t);
  let wallUs = Date.now() * 1000;
  const nowUs = wallUs;
  const recorder = await RecorderHarness.start(t, directory, { wallUs: () => wallUs });
  const producer = await recorder.connect("controller");
  const ids: string[] = [];
  for (const [nth, hours] of hoursAgo.entries()) {
    wallUs = nowUs - hours * HOUR_US;
    const { id } = await runWithCaptures(producer, nth + 1);
    await producer.accept({ type: "run.cancel", id });
    ids.push(id);
  }
  await producer.close();
  await recorder.stop();
  return { directory, ids };
}

t.test(
  "--retain-days: captures of runs that ended longer ago go, by the end of the run and not by its bytes",
  async (t) => {
    const { directory, ids } = await storeOf(t, [24 * 40, 49, 47, 1]);
    const isThere = async (client: ContractClient): Promise<boolean[]> => {
      const statuses = await Promise.all(
        ids.map(async (id) => (await client.raw("GET", `/runs/${id}/files/marked.png`)).status),
      );
      return statuses.map((status) => {
        if (status !== 200 && status !== 410) throw new Error(`status ${status}`);
        return status === 200;
      });
    };
    const untilKept = async (args: readonly string[], kept: readonly boolean[]): Promise<void> => {
      const service = await ServiceProcess.startFor(t, { dataDirectory: directory, args: ["serve", ...args] });
      const client = new ContractClient(t, service.port);
      const count = kept.filter((one) => !one).length;
      let there: boolean[] = [];
      await until(`${count} runs without captures`, async () => {
        there = await isThere(client);
        return there.filter((one) => !one).length >= count;
      });
      t.same(there, kept, args.join(" "));
      const list = (await client.get("/runs", { query: { limit: 1000 } })) as { total: number };
      t.equal(list.total, ids.length, "every record stays");
      const { code, stderr } = await service.end();
      t.equal(code, 0);
      const told = stderr.split("\n").filter((line) => line.includes("retention removed captures"));
      const keptRuns = told.map((line) => (JSON.parse(line) as { kept_runs: number }).kept_runs);
      t.same(keptRuns, [kept.length - count], "it had come to its end");
      t.match(await checkDirectory(directory), { ok: true, findings: { length: 0 } });
    };
    await untilKept(["--retain-days", "2"], [false, false, true, true]);
    // The limit that removes more runs decides.
    await untilKept(["--retain-days", "1", "--retain-bytes", "1000000000"], [false, false, false, true]);
    rmSync(directory, { recursive: true, force: true });
  },
);
