import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { createKey } from "../../../http/requests/api-keys.js";
import { changeKeyFile, readKeyFile } from "../../../http/requests/key-file.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

t.test("a change of the keys is done, also where its lock has gone or cannot be removed", async (t) => {
  const folder = temporaryDirectory(t);
  const file = join(folder, "keys.json");
  const lock = `${file}.lock`;
  const ids: string[] = [];
  const add = (harm: () => void) => {
    const { stored } = createKey("read", "2026-01-01T00:00:00Z", null);
    ids.push(stored.id);
    return changeKeyFile(file, "createIfMissing", (keys) => {
      harm();
      return [...keys, stored];
    });
  };
  await add(() => rmSync(lock));
  t.strictSame(readdirSync(folder), ["keys.json"]);
  await add(() => {
    rmSync(lock);
    mkdirSync(lock);
  });
  t.strictSame(readdirSync(folder), ["keys.json", "keys.json.lock"]);
  t.strictSame(
    (await readKeyFile(file)).map(({ id }) => id),
    ids,
  );
});
