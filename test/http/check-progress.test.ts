import t from "tap";
import { CheckProgressLine } from "../../http/check-progress.js";

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

t.test("elsewhere a line comes every ten seconds, and none of a check that is soon done", async (t) => {
  t.strictSame(written(false).slice(0, 2), [
    "checked 10000 of 120000 bytes (8%), 1000 records\n",
    "checked 20000 of 120000 bytes (16%), 2000 records\n",
  ]);
  t.equal(written(false).length, 11);
});
