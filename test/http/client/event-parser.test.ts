import t from "tap";
import { EventParser, type ParsedEvent } from "../../../http/client/event-parser.js";

const STREAM = [
  "retry: 2000\n\n",
  'id: 1\nevent: run\ndata: {"a": 1}\n\n',
  ": a comment\n\n",
  "data: first\r\ndata:second\r\n\r\n",
  "id: 2\revent: run\rdata: ä\r\r",
  "event: run\nother: field\nretry: soon\ndata\n\n",
  "event: without data\n\n",
  "data: not complete\n",
].join("");

const EVENTS: ParsedEvent[] = [
  { id: "1", name: "run", data: '{"a": 1}' },
  { id: "1", name: "message", data: "first\nsecond" },
  { id: "2", name: "run", data: "ä" },
  { id: "2", name: "run", data: "" },
];

t.test("events come out however the text is cut", async (t) => {
  for (let size = 1; size <= STREAM.length; size++) {
    const parser = new EventParser();
    const events: ParsedEvent[] = [];
    for (let at = 0; at < STREAM.length; at += size) events.push(...parser.push(STREAM.slice(at, at + size)));
    t.strictSame(events, EVENTS, `pieces of ${size}`);
    t.equal(parser.retryMs, 2000);
  }
});
