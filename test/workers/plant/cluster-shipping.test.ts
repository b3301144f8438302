import { setTimeout } from "node:timers/promises";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { CAPTURE_STREAM } from "../../../workers/plant/capture-message.js";
import { LOG_STREAM, logSubject } from "../../../workers/plant/log-message.js";
import type { StoredMessage } from "../../../workers/plant/plant-client.js";
import { NatsCluster } from "../../helpers/plant/nats-cluster.js";
import { noNatsServer } from "../../helpers/plant/nats-server.js";
import { ship, untilShipped } from "../../helpers/plant/shipped-log.js";
import { namesIn } from "../../helpers/plant/shipped-names.js";
import { createDisk, openLog, recordOf } from "../../helpers/store/log-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const CELLS = 10;
const KILLS = sized(2, 100);
const SIZES = [0, 40, 3_000, 60_000, 700_000];

t.test("ten cells ship to three servers whose leader is killed again and again", { skip: noNatsServer }, async (t) => {
  const random = createRandom(SEED);
  const cluster = await NatsCluster.startFor(t);
  const cells = await Promise.all(
    Array.from({ length: CELLS }, async (_, nth) => {
      const disk = await createDisk();
      const opened = await openLog(disk, { segmentBytes: 1_000_000 });
      const [cell, storeId] = [`cell-${nth}`, `${nth}1111111-1111-4111-8111-111111111111`];
      const shipping = ship({ disk, cell, storeId, connect: () => cluster.client(), longestPauseMs: 500 });
      return { cell, storeId, opened, shipping };
    }),
  );
  let isRecording = true;
  const recording = cells.map(async ({ cell, opened }, nth) => {
    const own = createRandom(SEED + nth + 1);
    for (let record = 0; isRecording; record++) {
      await opened.log.whenCommitted(opened.log.append(recordOf(`${cell}-${record}`, own.pick(SIZES))));
      opened.timers.fire();
      await setTimeout(own.integer(20, 200));
    }
  });
  let [killed, paused] = [0, 0];
  for (let tries = 0; killed + paused < KILLS && tries < 20 * KILLS; tries++) {
    await setTimeout(random.integer(500, 2_500));
    const leader = await cluster.leader();
    if (leader === null) continue;
    if (random.chance(0.25)) {
      paused++;
      leader.signal("SIGSTOP");
      await setTimeout(random.integer(500, 4_000));
      leader.signal("SIGCONT");
    } else {
      killed++;
      await leader.kill();
      await setTimeout(random.integer(0, 1_000));
      await leader.start();
    }
  }
  isRecording = false;
  await Promise.all(recording);
  for (const { opened, shipping } of cells) await untilShipped(t, opened, shipping);
  await Promise.all(cells.map(({ shipping }) => shipping.stop()));
  let records = 0;
  for (const { cell, storeId, opened } of cells) {
    const messages = await cluster.eventually(async (client) => {
      const found: StoredMessage[] = [];
      for (let from = 1; ; ) {
        const message = await client.nextMessage(LOG_STREAM, logSubject(cell, storeId), from);
        if (message === null) return found;
        found.push(message);
        from = message.streamSequence + 1;
      }
    });
    t.strictSame(namesIn(messages), opened.names, cell);
    records += opened.names.length;
    await opened.log.close();
  }
  t.equal((await cluster.eventually((client) => client.streamState(CAPTURE_STREAM)))?.settings.num_replicas, 3);
  t.comment(
    `seed ${SEED}: ${CELLS} cells, ${records} records, leader killed ${killed} times and stopped ${paused} times: ` +
      "0 lost, 0 doubled, 0 out of order",
  );
});
