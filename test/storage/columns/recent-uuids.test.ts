import t from "tap";
import { readUuid } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { RecentUuids } from "../../../storage/columns/recent-uuids.js";

const seed = Number(process.env.TEST_SEED ?? 20261122);
t.comment(`TEST_SEED=${seed}`);

t.test("each is the text of its bytes, whatever was read before", async (t) => {
  const random = createRandom(seed);
  const uuids = Array.from({ length: 300 }, () => random.bytes(16));
  // Some that share a slot, and differ in one byte each.
  const [first = new Uint8Array(16)] = uuids;
  for (let nth = 0; nth < 16; nth++) {
    const other = first.slice();
    other[nth] = (other[nth] as number) ^ (nth === 9 || nth === 15 ? 0x40 : 1);
    uuids.push(other);
  }
  uuids.push(new Uint8Array(16), new Uint8Array(16).fill(255));
  const recent = new RecentUuids();
  t.equal(recent.read(new Uint8Array(16), 0), "00000000-0000-0000-0000-000000000000");
  for (let round = 0; round < 20_000; round++) {
    const uuid = random.pick(uuids);
    const at = random.integer(0, 40);
    const bytes = random.bytes(60);
    bytes.set(uuid, at);
    const text = recent.read(bytes, at);
    if (text === readUuid(uuid)) continue;
    t.equal(text, readUuid(uuid), `round ${round}`);
    return;
  }
  t.pass("20,000 texts");
});
