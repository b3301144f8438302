import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RoundSample } from "../harness/benchmark.js";
import { openDurableDatabase, type Sqlite } from "./sqlite.js";

/** Fewer where each is a transaction of its own: it is slower by far, and as exact with fewer. */
const SINGLE_SHARE = 1 / 16;
const TOGETHER = 64;

function insert(
  sqlite: Sqlite,
  directory: string,
  count: number,
  together: number,
  body: (at: number) => unknown,
): number {
  mkdirSync(directory);
  const database = openDurableDatabase(sqlite, join(directory, "appends.db"));
  try {
    database.exec("CREATE TABLE record (sequence INTEGER PRIMARY KEY, body NOT NULL)");
    const insertOne = database.prepare("INSERT INTO record (body) VALUES (?)");
    const begin = database.prepare("BEGIN IMMEDIATE");
    const commit = database.prepare("COMMIT");
    const startMs = performance.now();
    for (let at = 0; at < count; ) {
      begin.run();
      for (const end = Math.min(count, at + together); at < end; at++) insertOne.run(body(at));
      commit.run();
    }
    return count / ((performance.now() - startMs) / 1000);
  } finally {
    database.close();
    rmSync(directory, { recursive: true });
  }
}

/**
 * The least that better-sqlite3 can do with `count` bodies (WAL, synchronous=FULL): a table of a number and the body, no index
 * beside it, statements prepared before, checkpoints as by default. Once with each in a transaction of its own, once with 64
 * together; the faster of the two is the result.
 *
 * @param body makes the `at`-th; within the clock
 */
export function measureSqliteAppends(
  sqlite: Sqlite,
  directory: string,
  count: number,
  body: (at: number) => unknown,
): RoundSample {
  const startMs = performance.now();
  const single = insert(sqlite, directory, Math.ceil(count * SINGLE_SHARE), 1, body);
  const together = insert(sqlite, directory, count, TOGETHER, body);
  return {
    value: Math.max(single, together),
    seconds: (performance.now() - startMs) / 1000,
    details: { "1 to a transaction": single, [`${TOGETHER} to a transaction`]: together },
  };
}
