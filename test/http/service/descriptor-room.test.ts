import t from "tap";
import { connectionBounds, roomForConnections } from "../../../http/service/descriptor-room.js";

t.test("the store's descriptors are kept from clients, whatever the limit", async (t) => {
  t.same(
    [64, 256, 1_024, 4_096, 524_288].map((limit) => roomForConnections(limit)),
    [24, 96, 384, 2_048, 522_240],
  );
  for (let limit = 1; limit < 5_000; limit++) {
    const room = roomForConnections(limit);
    if (room < 1 || (limit > 2 && limit - room < Math.min(2_048, limit / 2))) t.fail(`${room} of ${limit}`);
  }
  t.equal(roomForConnections(null), 10_000);
  t.same(connectionBounds(96), { total: 96, ofOneAddress: 72 });
  t.same(connectionBounds(1), { total: 1, ofOneAddress: 1 });
});
