import type { FindingQuery } from "../../../storage/findings/finding-query.js";
import type { FindingsReader } from "../../../storage/findings/segment-findings.js";
import { CSV_HEAD } from "../../../workers/artefacts/findings/check-rows.js";
import {
  aqdefStart,
  type ChecksFormat,
  EXPORT_BEGINS,
  type ExportPlace,
  exportPiece,
} from "../../../workers/artefacts/findings/checks-export.js";

/** How a program is called in an AQDEF file of these exports. */
const PROGRAM_NAME = "Cover\r\n2";

/** What comes before the first piece. */
export async function exportStart(reader: FindingsReader, format: ChecksFormat, query: FindingQuery) {
  if (format !== "dfq") return { head: Buffer.from(format === "csv" ? CSV_HEAD : ""), namesJson: "" };
  const start = await aqdefStart(reader, query, PROGRAM_NAME);
  if (start.head === null) throw new Error("too many names");
  return start;
}

/** The start of an export and all its pieces. */
export async function exportPieces(
  reader: FindingsReader,
  format: ChecksFormat,
  query: FindingQuery,
  bounds: Parameters<typeof exportPiece>[2] = {},
): Promise<Buffer[]> {
  const { head, namesJson } = await exportStart(reader, format, query);
  const pieces = [Buffer.from(head)];
  for (let from: ExportPlace | null = EXPORT_BEGINS; from !== null; ) {
    const { bytes, next } = await exportPiece(reader, { query, format, namesJson, from }, bounds);
    pieces.push(Buffer.from(bytes));
    from = next;
  }
  return pieces;
}
