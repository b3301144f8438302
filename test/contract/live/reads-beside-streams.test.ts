import t from "tap";
import type { View } from "../../../storage/view/view.js";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { ChangingCell } from "../../helpers/live/changing-cell.js";
import { EventStream } from "../../helpers/live/event-stream.js";

const STREAMS = 100;
const CHANGES = 15;
/** In the list that is read. */
const RUNS = 50;

for (const { name, front, uwsPackage } of frontsHere(t)) {
  t.test(`a list of runs does not wait until all streams are told (${name})`, async (t) => {
    const cell = new ChangingCell();
    const port = await cell.listenFor(t, { front, ...(uwsPackage !== undefined && { uwsPackage }) });
    const ids = Array.from({ length: RUNS }, () => cell.create());
    const streams = await Promise.all(Array.from({ length: STREAMS }, () => EventStream.open({ port })));
    t.teardown(() => streams.map((stream) => stream.close()));
    /** Events that were told between the first and the last step of making a list. */
    const told: number[] = [];
    const runPage = cell.view.runPage.bind(cell.view);
    cell.view.runPage = (...query: Parameters<View["runPage"]>) => {
      const before = cell.live.figures.changes.sent;
      const page = runPage(...query);
      return {
        ...page,
        async read(giveWay) {
          const read = await page.read(giveWay);
          told.push(cell.live.figures.changes.sent - before);
          return read;
        },
      };
    };
    for (let change = 1; change <= CHANGES; change++) {
      cell.note(ids[change] as string);
      await (await fetch(`http://127.0.0.1:${port}/runs?limit=${RUNS}`)).arrayBuffer();
      await Promise.all(streams.map((stream) => stream.until(({ events }) => events.length > change)));
    }
    const median = told.sort((a, b) => a - b)[CHANGES >> 1] as number;
    t.ok(median < STREAMS / 10, `${median} of ${STREAMS}`);
  });
}
