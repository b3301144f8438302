import { encode } from "@msgpack/msgpack";
import t from "tap";
import { parseCellMessage } from "../../../core/link/parse-cell-message.js";
import { RefusedError } from "../../../core/link/refusal.js";
import { TIME_LIMIT_US } from "../../../core/timestamps.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";
import { badRecords, examples, type Fields, EXAMPLE_ID as ID, MESSAGES } from "../../helpers/link/message-fields.js";

function refusalOf(body: unknown): { code: string; message: string; params: Fields } | undefined {
  try {
    parseCellMessage(body);
    return undefined;
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return error.refusal;
  }
}

for (const [type, [required, optional]] of Object.entries(MESSAGES)) {
  t.test(type, async (t) => {
    const [minimal, complete] = examples(required, optional);
    t.same(parseCellMessage({ type, ...minimal }), { type, ...minimal }, "without its optional fields");
    let taken = 0;
    for (const [field, kind] of Object.entries({ ...required, ...optional })) {
      for (const good of kind.good) {
        const refusal = refusalOf({ type, ...complete, [field]: good });
        if (refusal !== undefined)
          t.fail(`${field} should take ${JSON.stringify(good)?.slice(0, 80)}: ${refusal.message}`);
        taken++;
      }
    }
    let refused = 0;
    for (const [bad, field] of badRecords(required, optional)) {
      const refusal = refusalOf({ type, ...bad });
      const what = `${field} ${String(bad[field]).slice(0, 60)}`;
      if (refusal === undefined) {
        t.fail(`should be refused: ${what}`);
        continue;
      }
      const { path, allowed } = refusal.params;
      if (refusal.code !== "invalid_message") t.fail(`${what}: ${refusal.code}`);
      if (typeof path !== "string" || !(path === `/${field}` || path.startsWith(`/${field}/`)))
        t.fail(`${what}: ${path}`);
      if (!("value" in refusal.params) || allowed === undefined || allowed === null) t.fail(`${what}: params`);
      if (!refusal.message.startsWith(path as string)) t.fail(`${what}: ${refusal.message}`);
      if (JSON.stringify(refusal).length > 2_000)
        t.fail(`${what}: a refusal of ${JSON.stringify(refusal).length} characters`);
      // A refusal is a record of the log: it must survive the way there.
      encode(refusal);
      refused++;
    }
    t.ok(refused > 0, `takes ${taken} values, refuses ${refused}`);
  });
}

t.test("every message of workers/cell-link/README.md is in the table", async (t) => {
  t.equal(Object.keys(MESSAGES).length, 22);
  const refusal = refusalOf({ type: "x" });
  t.same(refusal?.params.allowed, Object.keys(MESSAGES));
});

t.test("what is no message at all", async (t) => {
  for (const body of [
    null,
    undefined,
    1,
    "run.start",
    [],
    [1n],
    1n,
    new Map(),
    new Date(0),
    new Uint8Array(3),
    Symbol("x"),
  ]) {
    t.match(refusalOf(body), { code: "invalid_message", params: { path: "", allowed: "a map with string keys" } });
  }
  for (const type of [
    undefined,
    null,
    1,
    "",
    "run",
    "run.start ",
    "__proto__",
    "constructor",
    "toString",
    ["run.start"],
  ]) {
    t.match(refusalOf({ type, id: ID }), { code: "invalid_message", params: { path: "/type" } }, String(type));
  }
  t.match(refusalOf({ id: ID }), { params: { path: "/type", value: null } });
});

t.test("a refusal names the field, what came and what is allowed, in bounds", async (t) => {
  const key = "k".repeat(1 << 20);
  for (const body of [
    { type: "run.start", id: ID, [key]: 1 },
    { type: "event.add", run_id: ID, event_type: key, data: {} },
    { type: key },
  ]) {
    const refusal = refusalOf(body);
    t.equal(refusal?.code, "invalid_message");
    t.ok(JSON.stringify(refusal).length < 4_000, `${JSON.stringify(refusal).length} characters`);
  }
  t.same(refusalOf({ type: "step.start", run_id: ID, index: 0 }), {
    code: "invalid_message",
    message: "/index must be >= 1",
    params: { path: "/index", value: 0, allowed: ">= 1" },
  });
  t.same(refusalOf({ type: "run.start", id: "R1" })?.params, {
    path: "/id",
    value: "R1",
    allowed: "a UUIDv7 in lower case",
  });
  t.same(refusalOf({ type: "run.start" })?.params, {
    path: "/id",
    value: null,
    allowed: "present",
  });
  t.same(refusalOf({ type: "cell.put", unit_system: "SI" })?.params, {
    path: "/unit_system",
    value: "SI",
    allowed: ["metric", "imperial"],
  });
  t.match(refusalOf({ type: "program.delete", id: "ffffffff-ffff-7fff-bfff-ffffffffffff" })?.params, {
    allowed: /before 2255-03-14T16:00:00.000000Z/,
  });
  t.ok(TIME_LIMIT_US < Number.MAX_SAFE_INTEGER);
});

t.test("hostile keys over the link: never stored, never a prototype", async (t) => {
  // {"type": "event.add", …, "data": {"__proto__": {"polluted": true}}} as MessagePack, which no JavaScript encoder writes.
  const body = encode({ type: "event.add", run_id: ID, event_type: "x", data: { __prot0__: { polluted: true } } });
  const at = Buffer.from(body.buffer, body.byteOffset, body.length).indexOf("__prot0__");
  body[at + 6] = "o".charCodeAt(0);
  const decoded = decodeBody(body);
  t.notOk(decoded.ok, "__proto__ stops at the reader of bodies");
  t.equal(({} as Fields).polluted, undefined);
  for (const key of ["constructor", "prototype", "hasOwnProperty", "toJSON", "valueOf", "length", "then"]) {
    const message = { type: "event.add", run_id: ID, event_type: "x", data: { [key]: { [key]: key } } };
    const read = decodeBody(encode(message));
    t.same(read, { ok: true, body: message }, key);
    t.same(read.ok && parseCellMessage(read.body), message);
  }
});

t.test("an unknown field is refused with the value that came", async (t) => {
  const id = "01a1fab0-9446-7269-a9a8-e9146513270e";
  t.match(refusalOf({ type: "run.start", id, speed: 5 }), {
    params: { path: "/speed", value: 5, allowed: /type, id/ },
  });
});
