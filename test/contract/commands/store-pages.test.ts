import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import t from "tap";
import { segmentName } from "../../../storage/log/segment.js";
import { isCorruption, RECOVERY_CASES } from "../../../storage/recovery/recovery-cases.js";
import { CHECK_CODES } from "../../../storage/repair/check-finding.js";
import { STORAGE_ERROR_CODES } from "../../../storage/storage-error.js";
import { MarkdownPage, tableRows } from "../../helpers/documents/markdown-page.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const STORE = new MarkdownPage("storage/README.md");
const BACKUP = new MarkdownPage("storage/BACKUP.md");
const LINK = new MarkdownPage("workers/cell-link/README.md");

const codesOf = (rows: string[][]): string[] => rows.map(([code = ""]) => code.replaceAll("`", ""));

t.test("every code that the store can report stands in a table, and no other", async (t) => {
  const damage = tableRows(STORE.section("## Damage"));
  const refusals = STORE.section("## Errors that refuse a start");
  const [starts, limits] = refusals.split("While the service runs") as [string, string];
  const findings = new Set(Object.values(RECOVERY_CASES).flatMap((finding) => finding ?? []));
  const told = new Set([...codesOf(damage), ...codesOf(tableRows(starts)), ...codesOf(tableRows(limits))]);
  t.same([...told].sort(), [...new Set([...findings, ...CHECK_CODES, ...STORAGE_ERROR_CODES])].sort());
  const ofCheck = new Set<string>([...findings, ...CHECK_CODES]);
  t.same(
    [...ofCheck].filter((code) => !codesOf(damage).includes(code)),
    [],
  );
  for (const [code = "", , , exit] of damage) {
    const finding = [...findings].find((one) => code === `\`${one}\``);
    if (finding !== undefined) t.equal(exit, isCorruption(finding) ? "1" : "0", code);
  }
  const actions = new Set(
    STORE.section("### What to do")
      .match(/^\*\*[A-Z](?=\. )/gm)
      ?.map((mark) => mark.slice(2)),
  );
  t.same(new Set(damage.map(([, , , , action]) => action).filter((action) => action !== "-")), actions);
});

/** A page's commands, on these paths in place of the page's. */
function run(code: string, paths: Readonly<Record<string, string>>): { status: number | null; output: string } {
  let script = code.replace(/^sudo (systemctl|chown) .*\n/gm, "").replaceAll(/sudo (-u \w+ )?/g, "");
  const command = /(npx |^ *)inspection-service (?=[a-z])/gm;
  script = script.replaceAll(command, `${process.execPath} ${resolve("dist/http/main.js")} `);
  for (const [page, here] of Object.entries(paths)) script = script.replaceAll(page, here);
  const { status, stdout, stderr } = spawnSync("sh", ["-ec", script], { encoding: "utf8" });
  return { status, output: `${script}\n${stdout}${stderr}` };
}

const folder = temporaryDirectory(t);
const DATA = join(folder, "lib", "inspection-service");
mkdirSync(join(folder, "lib"));

/** Records one run more in the store; gives its id, and how many runs there are. */
async function recordRun(): Promise<{ id: string; total: number }> {
  const recorder = await RecorderHarness.start(t, DATA);
  const raw = await recorder.connect("press-7");
  const id = nextId();
  await raw.accept(programPut());
  await raw.accept({ type: "run.create", id, program_id: PROGRAM_ID });
  await raw.close();
  await recorder.stop();
  return { id, total: recorder.runs.size };
}

t.test("damage is mended with the bytes of an older backup, as the page says: what came later stays", async (t) => {
  const paths = {
    "/var/lib/inspection-service": DATA,
    "/backup/inspection": join(folder, "older"),
    $SEGMENT: segmentName(1),
  };
  await recordRun();
  const [backUp = ""] = BACKUP.blocks("## Back up", "sh");
  t.match(run(backUp, paths), { status: 0 });
  const { total } = await recordRun();
  const segment = join(DATA, "meta", segmentName(1));
  const intact = readFileSync(segment);
  const damaged = Buffer.from(intact);
  damaged[damaged.length >> 2]! ^= 1;
  writeFileSync(segment, damaged);
  t.match(await runCommand(["check", "--data", DATA]), { code: 1, stdout: /record_damaged/ });
  const [mend = ""] = STORE.blocks("### What to do", "sh");
  t.match(run(mend, paths), { status: 0, output: /\nok\n/ });
  t.ok(readFileSync(segment).equals(intact));
  t.equal((await recordRun()).total, total + 1);
});

t.test("backup, restore and move as the page says: what was backed up is served, and goes on", async (t) => {
  mkdirSync(join(folder, "new"));
  const before = (await recordRun()).total;
  const kept = await recordRun();
  const paths = {
    "/var/lib/inspection-service": DATA,
    "/var/lib ": `${join(folder, "lib")} `,
    "/backup/inspection": join(folder, "inspection"),
  };
  const [backUp = ""] = BACKUP.blocks("## Back up", "sh");
  const backedUp = run(backUp, paths);
  t.equal(backedUp.status, 0, backedUp.output);
  t.match(backedUp.output, /\nok\n$/);
  t.equal((await recordRun()).total, before + 2);

  const [restore = ""] = BACKUP.blocks("## Restore", "sh");
  const restored = run(restore, paths);
  t.equal(restored.status, 0, restored.output);
  t.equal((await recordRun()).total, before + 2, "the run of after the backup is gone, and another was recorded");

  const [pack = "", unpack = ""] = BACKUP.blocks("## Move to another computer", "sh");
  const tar = { "inspection.tar": join(folder, "inspection.tar") };
  const packed = run(pack, { ...paths, ...tar });
  t.equal(packed.status, 0, packed.output);
  const moved = join(folder, "new", "inspection-service");
  const there = { "/var/lib/inspection-service": moved, "/var/lib ": `${join(folder, "new")} `, ...tar };
  const unpacked = run(unpack, there);
  t.equal(unpacked.status, 0, unpacked.output);
  t.same(readdirSync(join(moved, "meta")), readdirSync(join(DATA, "meta")));

  const [commands = ""] = STORE.blocks("## Commands", "sh");
  const names = {
    "/var/lib/inspection-service": DATA,
    "/var/lib/inspection ": `${DATA} `,
    "/var/lib/inspection\n": `${DATA}\n`,
    RUN_ID: kept.id,
    "--to run": `--to ${join(folder, "run")}`,
  };
  const printed = run(commands, names);
  t.equal(printed.status, 0, printed.output);
  t.ok(readdirSync(join(folder, "run")).includes("run.json"));
  const [reset = ""] = STORE.blocks("## A wrong clock", "sh");
  t.match(run(reset, names), { status: 0, output: /clock: not changed, as it was not ahead/ });
  const [producers = ""] = LINK.blocks("## Bounds", "sh");
  t.match(run(producers, names), { status: 0, output: /press-7/ });
});
