import { rmSync } from "node:fs";
import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { Log } from "../../../storage/log/log.js";
import { encodeRefusal } from "../../../storage/records/change-record.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const DAY_US = 86_400_000_000;
const FIRST_US = Date.UTC(2026, 0, 1) * 1_000;
const OLD = 130;
const component = (key: string) => ({ type: "component.put", key, status: "healthy" });

/** A store that knows these producers, each of one message, at one time after the other. */
async function writeStore(path: string, producers: readonly { name: string; timeUs: number }[]): Promise<void> {
  const directory = await openDataDirectory({ path, creates: true });
  const state = new RecorderState();
  const log = await Log.open({
    fileSystem: nodeFileSystem,
    directory: directory.metaPath,
    quarantineDirectory: directory.quarantinePath,
    durability: "none",
    openingState: () => state.openingState(),
    onRecords: () => {},
  });
  for (const { name, timeUs } of producers) {
    const refusal = { code: "not_found", message: "", params: {} } as const;
    log.append({ ...encodeRefusal({ producer: name, sequence: 1 }, refusal), timeUs });
  }
  await log.close();
  await directory.release();
}

t.test("programs that share a name show before anything is stored; one that comes back does not", async (t) => {
  const instances = ["a", "b", "c"].map((digit) => `00000000-0000-7000-8000-00000000000${digit}`);
  for (const programs of [2, 3]) {
    const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
    await recorder.connect("alone", instances[0]);
    await recorder.connect("alone", instances[0]);
    for (const instance of instances.slice(0, programs)) await recorder.connect("cell", instance);
    t.equal(recorder.row("recorder").status, "healthy", "each may have followed the one before");
    await recorder.connect("cell", instances[0]);
    await recorder.until(() => recorder.row("recorder").status === "degraded");
    t.match(recorder.row("recorder").detail, /several programs send as producer cell and take the connection/);
    await recorder.stop();
  }
});

t.test("names that are long unused make room for new ones, and only when there is none", async (t) => {
  const path = temporaryDirectory(t);
  rmSync(path, { recursive: true });
  await writeStore(
    path,
    Array.from({ length: LIMITS.producers }, (_, nth) =>
      nth < OLD
        ? { name: `old-${nth}`, timeUs: FIRST_US + nth }
        : { name: `busy-${nth}`, timeUs: FIRST_US + 60 * DAY_US + nth },
    ),
  );
  const start = (day: number) => RecorderHarness.start(t, path, { wallUs: () => FIRST_US + day * DAY_US });
  const full = await start(89);
  t.match(full.row("recorder"), { status: "degraded", detail: /10000 of 10000 producer names .*producers/ });
  const refused = new RawProducer(full.address);
  refused.hello({ protocol: 1, producer: "new" });
  t.match(await refused.next(), { kind: "refuse", sequence: 0, body: { code: "unavailable", message: /producers/ } });
  t.match((await full.connect("old-7")).welcome, { committed: 1 }, "all who are known come in");
  await full.stop();

  const wrong = await start(300 * 365);
  const late = new RawProducer(wrong.address);
  late.hello({ protocol: 1, producer: "new" });
  t.match(await late.next(), { kind: "refuse", sequence: 0 }, "a clock that is wrong for certain makes no name old");
  await wrong.stop();

  const later = await start(91);
  const kept = await later.connect("old-3");
  await (await later.connect("new")).accept(component("new"));
  t.match(
    later.lines.filter(({ message }) => /long unused/.test(message)),
    listOf({ fields: { count: 100, first: "old-0" } }),
  );
  t.match((await later.connect("new-2")).welcome, { committed: 0 });
  await kept.accept(component("kept"));
  t.match((await later.connect("old-110")).welcome, { committed: 1 }, "no more of them than needed");
  await later.stop();

  const again = await start(92);
  for (const [name, committed] of [
    ["old-0", 0],
    ["old-3", 2],
    ["old-110", 1],
    ["busy-9999", 1],
    ["new", 1],
  ] as const) {
    t.match((await again.connect(name)).welcome, { committed }, name);
  }
  await again.stop();
});

t.test("a hello without a message takes no place for ever; few names are no fault", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  for (let nth = 0; nth < 30; nth++) {
    const raw = await recorder.connect(`passing-${nth}`);
    await raw.close();
  }
  await recorder.until(() => recorder.lines.filter(({ message }) => message === "producer disconnected").length === 30);
  t.match(recorder.row("recorder"), { status: "healthy", detail: "0 producers connected" });
});

t.test("a producer that reconnects in a loop, and any number of names, make a bounded number of lines", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const told = (what: string) => recorder.lines.filter(({ message }) => message === `producer ${what}`);
  for (let nth = 0; nth < 40; nth++) await (await recorder.connect("looping")).close();
  const last = await recorder.connect("looping");
  t.match(told("connected"), listOf({ fields: { producer: "looping", committed: 0 } }), "the first at once");
  recorder.timers.advance(10_000);
  t.match(told("connected").slice(1), listOf({ level: "info", fields: { producer: "looping", count: 40 } }));
  recorder.timers.advance(20_000);
  t.equal(told("connected").length, 2, "no more without cause");
  t.ok(told("disconnected").length <= 2);
  const before = recorder.lines.length;
  for (let nth = 0; nth < 200; nth++) await (await recorder.connect(`name-${nth}`)).close();
  await last.close();
  recorder.timers.advance(10_000);
  // There are two kinds of line. Of each, a hundred names have their own line; the others share a first line, and one with their count.
  t.ok(recorder.lines.length - before <= 2 * 102, `${recorder.lines.length - before} lines`);
  const others = recorder.lines.filter(({ fields }) => (fields.count as number) > 40);
  t.match(others, listOf({ fields: { producer: undefined } }, { fields: { producer: undefined } }));
});
