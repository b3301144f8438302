import t from "tap";
import { localTime } from "../../../../http/console/data/times.js";

t.test("a day begins at 00:00:00, whatever the viewer's language makes of midnight", async (t) => {
  const midnight = new Date(2026, 10, 26);
  t.equal(localTime(midnight.toISOString(), midnight.getTime() + 1), "00:00:00");
  t.match(localTime(midnight.toISOString(), midnight.getTime() - 1), /26.* 00:00:00$/);
});
