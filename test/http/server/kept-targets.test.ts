import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { heldBytes } from "../../helpers/process/held-memory.js";

const PATHS = 3_600;
// The newer build of uWebSockets.js takes heads of up to 4,096 bytes.
const QUERY_BYTES = 3_500;

for (const here of frontsHere(t)) {
  t.test(`a path is remembered without its query (${here.name})`, async (t) => {
    const cell = new RecordedCell();
    const port = await cell.listenFor(t, here);
    const connection = await RawConnection.openFor(t, port);
    const ask = async (nth: number) => {
      const id = generateUuidV7(1_780_000_000_000 + nth, new Uint8Array(10), null);
      connection.send(`GET /runs/${id}?${"a".repeat(QUERY_BYTES)} HTTP/1.1\r\nHost: x\r\n\r\n`);
      const answer = await connection.response();
      if (answer?.status !== 404) t.fail(`${answer?.status}`);
    };
    await ask(0);
    const before = heldBytes();
    for (let nth = 1; nth <= PATHS; nth++) await ask(nth);
    const grown = heldBytes() - before;
    t.ok(grown < (PATHS * QUERY_BYTES) / 2, `${grown} bytes after ${PATHS} paths with ${QUERY_BYTES} each after them`);
  });
}
