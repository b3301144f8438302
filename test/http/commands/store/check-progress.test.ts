import t from "tap";
import { CheckProgressLine } from "../../../../http/commands/store/check-progress.js";
import { check } from "../../../../http/commands/store/store-commands.js";
import { nextId, PROGRAM_ID, programPut } from "../../../helpers/link/link-messages.js";
import { RawProducer } from "../../../helpers/link/raw-producer.js";
import { ServiceProcess } from "../../../helpers/process/service-process.js";

/** What is written while a check of 120 s reports its progress 100 times a second. */
function written(isTTY: boolean): string[] {
  const texts: string[] = [];
  let nowMs = 0;
  const line = new CheckProgressLine({ isTTY, write: (text) => texts.push(text) }, () => nowMs);
  for (; nowMs < 120_000; nowMs += 10) line.update({ bytes: nowMs, totalBytes: 120_000, records: nowMs / 10 });
  line.end();
  return texts;
}

t.test("on a terminal one line is written anew, and is gone in the end", async (t) => {
  const texts = written(true);
  t.ok(texts.length > 500 && texts.length < 700, `${texts.length} times`);
  t.ok(texts.every((text) => text.startsWith("\r") && !text.includes("\n")));
  t.match(texts.at(-2), /checked \d+ of 120000 bytes \(99%\), \d+ records$/);
  t.equal(texts.at(-1), "\r\u001b[K");
});

t.test("elsewhere nothing is written", async (t) => {
  t.same(written(false), []);
});

t.test("the command tells how far it is, up to the end of the store", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "cell");
  await producer.accept(programPut());
  for (let run = 0; run < 20; run++) {
    await producer.accept({ type: "run.create", id: nextId(), program_id: PROGRAM_ID });
  }
  await producer.close();
  t.match(await service.end(), { code: 0 });

  const texts: string[] = [];
  let nowMs = 0;
  // A clock on which every look is a minute later.
  const minutes = (): number => {
    nowMs += 60_000;
    return nowMs;
  };
  const printed: string[] = [];
  const isOk = await check(
    { data: service.dataDirectory, json: true, "reset-clock": false },
    new CheckProgressLine({ isTTY: true, write: (text) => texts.push(text) }, minutes),
    (line) => printed.push(line),
  );
  t.equal(isOk, true);
  t.equal(printed.length, 1, "the result");
  t.ok(texts.length > 0);
  const lines = texts.slice(0, -1);
  for (const text of lines) t.match(text, /checked \d+ of \d+ bytes \(\d+%\), \d+ records$/);
  t.match(lines.at(-1), /\((?:99|100)%\), 2[1-9] records/);
});
