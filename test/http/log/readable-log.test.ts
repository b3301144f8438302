import t from "tap";
import { createRandom } from "../../../core/random.js";
import { readableLine } from "../../../http/log/readable-log.js";

process.env.TZ = "Europe/Berlin";

const BASE = { level: 30, time: "2026-11-25T21:22:13.724Z", service_version: "0.1.0" };
const readable = (fields: object) => readableLine(`${JSON.stringify({ ...BASE, ...fields })}\n`, false);

t.test("local time, level, message, and the fields that say something", async (t) => {
  t.equal(
    readable({ runs: 2, gap: 0, listen: null, none: {}, decisions: { no_segment: 1 }, path: "/a b", msg: "opened" }),
    '22:22:13  info   opened  runs=2 decisions={"no_segment":1} path="/a b"\n',
  );
  t.equal(readable({ level: 40, msg: "no field" }), "22:22:13  warn   no field\n");
  t.equal(readable({ cause: "x".repeat(300), msg: "long" }), `22:22:13  info   long  cause=${"x".repeat(200)}…\n`);
});

t.test("an error has its stack below the line, one from another thread its code and message in it", async (t) => {
  const err = { type: "RangeError", message: "much", stack: "RangeError: much\n    at made (file.js:1:2)", code: "E" };
  t.equal(
    readable({ level: 50, trace_id: "t1", err, msg: "failed" }),
    [
      "22:22:13  error  failed  trace_id=t1",
      "    RangeError: much",
      "        at made (file.js:1:2)",
      '    {"code":"E"}',
      "",
    ].join("\n"),
  );
  t.equal(
    readable({ level: 60, error: { code: "io", message: "no disk", params: { path: "a" } }, msg: "ended" }),
    '22:22:13  fatal  ended  error=io: no disk {"path":"a"}\n',
  );
});

t.test("colours are for terminals", async (t) => {
  t.equal(
    readableLine(JSON.stringify({ ...BASE, runs: 1, msg: "opened" }), true),
    "22:22:13  \u001b[32minfo \u001b[0m  opened  \u001b[90mruns=1\u001b[0m\n",
  );
});

t.test("what is no JSON object comes escaped", async (t) => {
  t.equal(readableLine("\u001b[2J half a line\n", false), "\\u001b[2J half a line\n");
  t.equal(readableLine("null\n", false), "null\n");
});

t.test("no text brings a control character to the terminal, or begins a line of its own", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_126);
  t.comment(`SEED=${seed}`);
  const random = createRandom(seed);
  const character = () =>
    random.integer(0, 2) === 0
      ? random.pick(["\u001b", "\n", "\r", "\u007f", "\u009b", "\u2028", "\u202e", "\u2066", " ", '"'])
      : String.fromCodePoint(random.integer(0, 0xd7ff));
  const text = () => Array.from({ length: random.integer(0, 20) }, character).join("");
  for (let n = 0; n < 2_000; n++) {
    const err = { type: text(), message: text(), stack: random.pick([text(), undefined]), [text()]: text() };
    const line = readable({
      [`x${text()}`]: random.pick([text(), { [text()]: [text()] }]),
      error: { code: text(), message: text(), params: { [text()]: text() } },
      err,
      msg: text(),
    });
    const [first = "", ...below] = line.slice(0, -1).split("\n");
    const isPlain = !/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u.test([first, ...below].join(""));
    if (!isPlain || !/^22:22:13 {2}info {3}/.test(first) || !below.every((one) => one.startsWith("    "))) {
      t.fail(JSON.stringify(line));
      return;
    }
  }
  t.pass();
});
