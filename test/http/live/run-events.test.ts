import t from "tap";
import { RunEvents } from "../../../http/live/run-events.js";
import type { RunChanges } from "../../../storage/view/changes/run-changes.js";

t.test("an event is made once for all clients of an address, unless its record could not be read", async (t) => {
  const read: string[] = [];
  const changes = (timesUs: number[], isWhole = true): RunChanges => ({
    ...{ markUs: timesUs.at(-1) ?? 0, isLast: true, timesUs },
    async read(places, baseUrl) {
      read.push(`${baseUrl}: ${places.map((place) => timesUs[place]).join()}`);
      return { runs: places.map((place) => Buffer.from(`{"at":${timesUs[place]}}`)), isWhole };
    },
  });
  const events = new RunEvents();
  const text = async (of: RunChanges, baseUrl = "http://a") => (await events.of(of, baseUrl)).map(String);
  const first = 'id: 1970-01-01T00:00:00.000001Z\nevent: run\ndata: {"at":1}\n\n';
  t.strictSame(await text(changes([1])), [first]);
  const [again, second] = await text(changes([1, 2]));
  t.strictSame([again, second], [first, first.replaceAll("1Z", "2Z").replace(":1}", ":2}")]);
  await text(changes([1, 2]));
  await text(changes([2]), "http://b");
  await text(changes([3], false));
  await text(changes([3]));
  t.strictSame(read, ["http://a: 1", "http://a: 2", "http://b: 2", "http://a: 3", "http://a: 3"]);
});
