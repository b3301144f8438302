import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { startThreads } from "../../../../workers/artefacts/pool/piscina-threads.js";

const LATE_WORD = new URL("../../../helpers/process/late-word-thread.js", import.meta.url);

t.test("a late word of the task before does not count as this one's begin", async (t) => {
  const threads = startThreads(LATE_WORD, (error) => t.fail(error.message));
  t.teardown(() => threads.destroy());
  for (const name of ["first", "second"]) {
    const file = join(t.testdir(), name);
    let begins = 0;
    const { signal } = new AbortController();
    const onBegun = (): void => {
      begins++;
      writeFileSync(file, "");
    };
    t.ok(await threads.run(file, { signal, onBegun }));
    t.equal(begins, 1, name);
  }
});

t.test("tasks that come one after the other have one thread, however many there are", async (t) => {
  const threads = startThreads(LATE_WORD, (error) => t.fail(error.message));
  t.teardown(() => threads.destroy());
  const { signal } = new AbortController();
  const folder = t.testdir();
  const at = (name: string) => join(folder, name);
  const held = ["a", "b", "c"];
  const ended: Promise<unknown>[] = [];
  await Promise.all(
    held.map((name) => new Promise<void>((onBegun) => ended.push(threads.run(at(name), { signal, onBegun })))),
  );
  for (const name of held) writeFileSync(at(name), "");
  await Promise.all(ended);
  writeFileSync(at("thread"), "");
  const seen = new Set<unknown>();
  for (let nth = 0; nth < 6; nth++) seen.add(await threads.run(at("thread"), { signal }));
  t.equal(seen.size, 1);
});
