import { createRequire } from "node:module";
import { join } from "node:path";
import type { MissingContestant } from "../harness/benchmark.js";

/** What the benchmarks use of better-sqlite3 (https://github.com/WiseLibs/better-sqlite3/blob/master/docs/api.md). */
export interface SqliteStatement {
  run(...parameters: unknown[]): unknown;
  get(...parameters: unknown[]): unknown;
  all(...parameters: unknown[]): unknown[];
  /** Rows as the bare value of their first column. */
  pluck(): SqliteStatement;
}

export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  pragma(source: string, options?: { simple: boolean }): unknown;
  close(): unknown;
}

export type Sqlite = new (path: string) => SqliteDatabase;

/** Where it is installed, apart from what the service needs; this module runs in dist/bench/peers. */
export const PEERS_PACKAGE = join(import.meta.dirname, "../../../.ci/peers/package.json");

/** better-sqlite3, or why it cannot be used here. */
export function loadSqlite(): { sqlite: Sqlite } | { why: string } {
  try {
    const sqlite = createRequire(PEERS_PACKAGE)("better-sqlite3") as Sqlite;
    // The native binary is loaded with the first database only.
    new sqlite(":memory:").close();
    return { sqlite };
  } catch (error) {
    const [reason = ""] = (error as Error).message.split("\n");
    return {
      why: `better-sqlite3 cannot be loaded (${reason}); node .ci/setup-peers.mjs installs it where that is possible`,
    };
  }
}

/** What a benchmark says of its contestants that need better-sqlite3. */
export function missingWithoutSqlite(names: readonly string[], why: string): MissingContestant[] {
  return names.map((name) => ({ name, why }));
}

/** A database with the durability of the log: a commit returns when the write-ahead log has been synced. */
export function openDurableDatabase(sqlite: Sqlite, path: string): SqliteDatabase {
  const database = new sqlite(path);
  if (database.pragma("journal_mode = WAL", { simple: true }) !== "wal") throw new Error("no write-ahead log");
  database.pragma("synchronous = FULL");
  return database;
}
