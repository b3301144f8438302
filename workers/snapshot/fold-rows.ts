import { crc32 } from "node:zlib";
import { formatUuidWords } from "../../core/identifiers.js";
import { unpackValues } from "../../storage/records/packed-values.js";
import type { SnapshotSource } from "../../storage/snapshot/snapshot-format.js";
import { unpackRecords } from "../../storage/view/kept-records.js";
import type { SnapshotFacts } from "../recorder/recorder-state.js";

/** A table of what was folded: its rows as text, in an order that follows from them. */
export interface FoldTable {
  name: string;
  rows: string[];
}

/**
 * Both folds of the log as tables of text, of which two can be compared: equal exactly if the folds are, whatever the order in which
 * programs, serial numbers and frames came to them.
 */
export async function* foldTables(source: SnapshotSource): AsyncGenerator<FoldTable, void> {
  const runIds = idsOf(await source.read("viewRunIds"));
  yield { name: "runs of the view", rows: await viewRuns(source, runIds) };
  const frameRuns = await source.read("viewFrameRuns");
  const frames = idsOf(await source.read("viewFrameIds")).map((id, nth) => `${id} ${runIds[frameRuns[nth] as number]}`);
  yield { name: "frames of the view", rows: frames.sort() };
  yield { name: "programs of the view", rows: packedRows(await source.read("viewPrograms")) };
  yield { name: "programs ever of the view", rows: idsOf(await source.read("viewProgramIdsEver")).sort() };
  yield { name: "cell and components of the view", rows: packedRows(await source.read("viewCell")) };
  yield { name: "runs of the view that have not ended", rows: keptRows(await source.read("viewKeptRecords")) };
  yield { name: "webhooks of the view", rows: packedRows(await source.read("viewWebhooks")) };
  yield { name: "deliveries of the view", rows: await viewDeliveries(source) };

  const ownRunIds = idsOf(await source.read("recorderRunIds"));
  const statuses = await source.read("recorderRunStatuses");
  const { components, ...facts } = factsOf(await source.read("recorderFacts"));
  const ownRuns = ownRunIds.map((id, nth) => `${id} ${statuses[nth]}`);
  yield { name: "runs of the recorder", rows: ownRuns.sort() };
  const ownFrameRuns = await source.read("recorderFrameRuns");
  const ownFrames = idsOf(await source.read("recorderFrameIds")).map(
    (id, nth) => `${id} ${ownRunIds[ownFrameRuns[nth] as number]}`,
  );
  yield { name: "frames of the recorder", rows: ownFrames.sort() };
  const revisions = await source.read("recorderRevisions");
  const serials = textsOf(await source.read("recorderSerialBytes"), await source.read("recorderSerialEnds"));
  yield { name: "revisions", rows: serials.map((serial, nth) => `${serial} ${revisions[nth]}`).sort() };
  const captures = await source.read("recorderCaptures");
  const captureRows = Array.from({ length: captures.length / 6 }, (_, row) =>
    captures.subarray(row * 6, row * 6 + 6).join(" "),
  );
  yield { name: "kept captures", rows: captureRows };
  yield { name: "components of the recorder", rows: components.map((row) => JSON.stringify(row)).sort() };
  yield { name: "facts of the recorder", rows: [JSON.stringify(facts)] };
  yield { name: "programs of the recorder", rows: packedRows(await source.read("recorderPrograms")) };
  yield { name: "producers", rows: packedRows(await source.read("recorderProducers")) };
  yield { name: "runs of the recorder that have not ended", rows: keptRows(await source.read("recorderKeptRecords")) };
  yield { name: "webhooks of the recorder", rows: webhookRows(await source.read("recorderWebhooks")) };
  yield {
    name: "deliveries that have not come to their end",
    rows: packedRows(await source.read("recorderDeliveries")),
  };
}

async function viewRuns(source: SnapshotSource, runIds: readonly string[]): Promise<string[]> {
  const programIds = idsOf(await source.read("viewRunProgramIds"));
  const programs = await source.read("viewRunPrograms");
  const serials = await source.read("viewRunSerials");
  const texts = textsOf(await source.read("viewSerialBytes"), await source.read("viewSerialEnds"));
  const states = await source.read("viewRunStates");
  const times = await source.read("viewRunTimes");
  const bases = await source.read("viewSegmentBases");
  const segments = await source.read("viewRecordSegments");
  const offsets = await source.read("viewRecordOffsets");
  const lengths = await source.read("viewRecordLengths");
  return runIds.map((id, nth) => {
    const length = lengths[nth] as number;
    const place = length === 0 ? "" : `${bases[segments[nth] as number]}:${offsets[nth]}+${length}`;
    const program = programIds[programs[nth] as number];
    return `${id} ${states[nth]} ${times[nth]} ${program} ${place} ${texts[serials[nth] as number] ?? ""}`;
  });
}

/** What there is one of, of the recorder's state: by name, as plain values. */
function factsOf(bytes: Uint8Array): SnapshotFacts {
  const [facts] = unpackValues(bytes);
  return facts as SnapshotFacts;
}

async function viewDeliveries(source: SnapshotSource): Promise<string[]> {
  const ids = idsOf(await source.read("viewDeliveryIds"));
  const statuses = await source.read("viewDeliveryStatuses");
  const times = await source.read("viewDeliveryTimes");
  const runs = await source.read("viewDeliveryRuns");
  const runIds = idsOf(await source.read("viewDeliveryRunIds"));
  const webhooks = await source.read("viewDeliveryWebhooks");
  const webhookIds = idsOf(await source.read("viewDeliveryWebhookIds"));
  const bases = await source.read("viewDeliverySegmentBases");
  const segments = await source.read("viewDeliverySegments");
  const offsets = await source.read("viewDeliveryOffsets");
  const lengths = await source.read("viewDeliveryLengths");
  const rows = ids.map((id, nth) => {
    const length = lengths[nth] as number;
    const place = length === 0 ? "" : `${bases[segments[nth] as number]}:${offsets[nth]}+${length}`;
    const [run, webhook] = [runIds[runs[nth] as number], webhookIds[webhooks[nth] as number]];
    return `${id} ${statuses[nth]} ${times[nth]} ${run ?? ""} ${webhook} ${place}`;
  });
  return rows.sort();
}

/** Of a secret only its CRC: rows that differ are printed. */
function webhookRows(bytes: Uint8Array): string[] {
  const rows = Array.from(unpackValues(bytes), (value) => {
    const { secret, ...shown } = value as { secret?: string | null };
    return JSON.stringify([shown, secret === null || secret === undefined ? null : crc32(secret)]);
  });
  return rows.sort();
}

function idsOf(words: Uint32Array): string[] {
  return Array.from({ length: words.length / 4 }, (_, nth) => {
    const at = nth * 4;
    return formatUuidWords(
      words[at] as number,
      words[at + 1] as number,
      words[at + 2] as number,
      words[at + 3] as number,
    );
  });
}

function textsOf(bytes: Uint8Array, ends: Uint32Array): string[] {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return Array.from(ends, (end, nth) => decoder.decode(bytes.subarray(nth === 0 ? 0 : ends[nth - 1], end)));
}

function packedRows(bytes: Uint8Array): string[] {
  return Array.from(unpackValues(bytes), (value) => JSON.stringify(value)).sort();
}

/** The records of a run stay in their order. */
function keptRows(bytes: Uint8Array): string[] {
  const rows = Array.from(unpackRecords(bytes), ({ runId, type, timeUs, producer, body }) => ({
    runId,
    text: `${runId} ${type} ${timeUs} ${producer ?? ""} ${body.length} ${crc32(body)}`,
  }));
  rows.sort((a, b) => (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0));
  return rows.map(({ text }) => text);
}
