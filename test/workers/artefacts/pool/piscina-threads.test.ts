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
    t.equal(await threads.run(file, { signal, onBegun }), "done");
    t.equal(begins, 1, name);
  }
});
