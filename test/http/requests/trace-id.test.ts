import t from "tap";
import { freshTraceId, traceIdOf } from "../../../http/requests/trace-id.js";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

t.test("a fresh id is 32 lower-case hex digits and never repeats", async (t) => {
  // More than one pool of random bytes.
  const ids = new Set(Array.from({ length: 5000 }, freshTraceId));
  t.equal(ids.size, 5000);
  for (const id of ids) if (!/^[0-9a-f]{32}$/.test(id)) t.fail(id);
});

t.test("a traceparent by the rules of W3C Trace Context", async (t) => {
  const valid = [
    `00-${TRACE}-${PARENT}-01`,
    `00-${TRACE}-${PARENT}-00`,
    `00-${TRACE}-${PARENT}-ff`,
    `01-${TRACE}-${PARENT}-01`,
    `cc-${TRACE}-${PARENT}-01-what-the-future-brings`,
  ];
  for (const header of valid) t.equal(traceIdOf(header), TRACE, header);
  const invalid = [
    "",
    TRACE,
    `00-${TRACE}-${PARENT}`,
    `00-${TRACE}-${PARENT}-01-more`,
    `00-${TRACE}-${PARENT}-01-`,
    `cc-${TRACE}-${PARENT}-01.x`,
    `ff-${TRACE}-${PARENT}-01`,
    `00-${"0".repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `0-${TRACE}-${PARENT}-01`,
    `00-${TRACE.slice(1)}-${PARENT}-01`,
    `00-${TRACE}-${PARENT}-1`,
    `00-${TRACE}-${PARENT}-0g`,
    `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`,
    ` 00-${TRACE}-${PARENT}-01`,
  ];
  for (const header of invalid) t.equal(traceIdOf(header), undefined, JSON.stringify(header));
});
