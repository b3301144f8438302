import type { ListQuery } from "../load/http/list-queries.js";
import { PAGE } from "../load/http/list-queries.js";
import { openDurableDatabase, type Sqlite, type SqliteDatabase, type SqliteStatement } from "./sqlite.js";

/** A run as the peer keeps it: what lists filter by, and its list entry as JSON, ready. */
export interface SqliteRun {
  programId: string;
  status: string;
  serialNumber: string | null;
  updatedAtUs: number;
  entry: Uint8Array;
}

export interface SqliteLists {
  /** The bytes that the service answers. */
  list(query: ListQuery): Uint8Array;
  close(): void;
}

const START = Buffer.from('{"runs":[');
const COMMA = Buffer.from(",");
/** Filters by the columns that they bind. */
const COLUMNS = {
  programId: "program_id = ?",
  status: "status = ?",
  serialNumber: "serial_number = ?",
  updatedSinceUs: "updated_at > ?",
} as const;

/**
 * better-sqlite3 with an index for every filter, its entries made before and kept in a table of their own, so that nothing that is
 * counted or passed over holds their bytes. The page is found in the index alone, and only its 50 entries are fetched: the faster way
 * to write LIMIT and OFFSET.
 *
 * @param runs in order of creation
 */
export async function openSqliteLists(
  sqlite: Sqlite,
  path: string,
  runs: AsyncIterable<SqliteRun>,
): Promise<SqliteLists> {
  const database = openDurableDatabase(sqlite, path);
  await writeRuns(database, runs);
  return listsOf(database);
}

/** @param runs in order of creation */
export async function writeRuns(database: SqliteDatabase, runs: AsyncIterable<SqliteRun>): Promise<void> {
  database.exec(
    "CREATE TABLE run (ordinal INTEGER PRIMARY KEY, program_id TEXT, status TEXT, serial_number TEXT, updated_at INTEGER);" +
      "CREATE TABLE entry (ordinal INTEGER PRIMARY KEY, json BLOB)",
  );
  const insertRun = database.prepare("INSERT INTO run VALUES (?, ?, ?, ?, ?)");
  const insertEntry = database.prepare("INSERT INTO entry VALUES (?, ?)");
  let ordinal = 0;
  database.exec("BEGIN");
  for await (const { programId, status, serialNumber, updatedAtUs, entry } of runs) {
    insertRun.run(ordinal, programId, status, serialNumber, updatedAtUs);
    insertEntry.run(ordinal++, entry);
  }
  for (const column of ["program_id", "status", "serial_number", "updated_at"]) {
    database.exec(`CREATE INDEX run_${column} ON run (${column}, ordinal)`);
  }
  database.exec("COMMIT; ANALYZE");
}

/** Over a database that `writeRuns` has written to. */
export function listsOf(database: SqliteDatabase): SqliteLists {
  const statements = new Map<string, { count: SqliteStatement; page: SqliteStatement }>();
  const statementsFor = (where: string): { count: SqliteStatement; page: SqliteStatement } => {
    const known = statements.get(where);
    if (known !== undefined) return known;
    const made = {
      count: database.prepare(`SELECT COUNT(*) FROM run ${where}`).pluck(),
      page: database
        .prepare(
          `SELECT json FROM entry WHERE ordinal IN (SELECT ordinal FROM run ${where} ORDER BY ordinal DESC LIMIT ? OFFSET ?) ORDER BY ordinal DESC`,
        )
        .pluck(),
    };
    statements.set(where, made);
    return made;
  };
  return {
    list({ filters, offset }) {
      const conditions: string[] = [];
      const values: unknown[] = [];
      for (const [name, condition] of Object.entries(COLUMNS)) {
        const value = filters[name as keyof typeof COLUMNS];
        if (value === undefined) continue;
        conditions.push(condition);
        values.push(value);
      }
      const { count, page } = statementsFor(conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`);
      const total = count.get(...values) as number;
      const parts: Uint8Array[] = [START];
      for (const entry of page.all(...values, PAGE, offset) as Uint8Array[]) {
        if (parts.length > 1) parts.push(COMMA);
        parts.push(entry);
      }
      parts.push(Buffer.from(`],"total":${total},"limit":${PAGE},"offset":${offset}}`));
      return Buffer.concat(parts);
    },
    close: () => database.close(),
  };
}
