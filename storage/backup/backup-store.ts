import { basename, dirname } from "node:path";
import { counted } from "../../core/counted.js";
import { BACKUP_FILE, FORMAT_FILE, pathsIn } from "../disk/data-directory.js";
import { lockDirectory } from "../disk/directory-lock.js";
import { nodeFileSystem } from "../disk/file-system.js";
import { FileSystemError, isNoRoom, orWhereMissing } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { replacing } from "../disk/tolerant-reads.js";
import { readWholeFile, replaceFile, TEMPORARY_SUFFIX, withFile } from "../disk/whole-files.js";
import { forEachRecord, isOwnRecord, type LogRecord } from "../log/committed-batch.js";
import { hintName } from "../log/hint-format.js";
import { readSegmentHeader, segmentBaseOf, segmentName } from "../log/segment.js";
import { RecordDecodeError } from "../records/record-decode-error.js";
import { walkLog } from "../recovery/log-walk.js";
import { readHint } from "../recovery/read-hint.js";
import { RecoveryReportBuilder } from "../recovery/recovery-report.js";
import { type CheckProgress, type CheckResult, checkStore } from "../repair/check-store.js";
import { RecordVerifier } from "../repair/record-verifier.js";
import { readStore, type StoreReading } from "../repair/store-reading.js";
import { BackupFiles } from "./backup-files.js";
import {
  BackupError,
  type BackupNote,
  type BackupTarget,
  backupTarget,
  encodeNote,
  removeTree,
  takeUp,
} from "./backup-target.js";
import { type CaptureWord, NamedCaptures } from "./named-captures.js";

/** What is in the root of a store and belongs to the process that has it, or is made for the backup anew. */
const NOT_COPIED: ReadonlySet<string> = new Set(["ballast.bin", BACKUP_FILE, FORMAT_FILE]);
/** So often the log is copied once more because retention removed captures. Each time, only those of the time before can be missing. */
const MOST_PASSES = 20;

export interface BackupOptions {
  /** The store; a service may write to it. */
  data: string;
  /** The folder that the backup becomes: missing, empty, or a backup of this store. */
  to: string;
  /** True: a store that is damaged is backed up as it is. */
  withDamage?: boolean;
  fileSystem?: FileSystem;
  onProgress?(progress: CheckProgress): void;
}

export interface Backup {
  path: string;
  lastSequence: number;
  linkedFiles: number;
  copiedFiles: number;
  copiedBytes: number;
  check: CheckResult;
}

/**
 * Makes a backup: all that was acknowledged before the call is in it. It is written beside its place, verified, and takes its place as a whole.
 *
 * @throws BackupError when it cannot be made, or when `check` finds damage; StorageError when there is no store, or when another backup to the same
 *   folder is being made; FileSystemError. The folder is as it was then.
 */
export async function backupStore(options: BackupOptions): Promise<Backup> {
  const { data, to, fileSystem = nodeFileSystem } = options;
  const store = await identityOf(await readStore(data, fileSystem));
  const target = await backupTarget(fileSystem, data, to, store);
  await fileSystem.makeDirectory(target.incompletePath);
  const lock = await lockDirectory(fileSystem, `${target.incompletePath}/lock`);
  let left = [`${target.path}/lock`];
  try {
    return await made(options, fileSystem, target, await takeUp(fileSystem, target, store), store);
  } catch (error) {
    // Only the lock's folder is left then.
    left = [`${target.incompletePath}/lock`, target.incompletePath, ...left];
    await removeTree(fileSystem, target.incompletePath, ["lock"]).catch(() => {});
    if (isNoRoom(error) || (error instanceof FileSystemError && error.code === "ENOSPC"))
      throw new BackupError(`there is no room for the backup: ${error.message}; nothing of it was kept`);
    throw error;
  } finally {
    await lock.release();
    for (const folder of left) await fileSystem.removeDirectory(folder).catch(() => {});
  }
}

async function made(
  options: BackupOptions,
  fileSystem: FileSystem,
  target: BackupTarget,
  present: BackupNote | null,
  store: string,
): Promise<Backup> {
  const { path, incompletePath, previousPath } = target;
  const from = options.data.replace(/(?<=.)\/+$/, "");
  await removeTree(fileSystem, previousPath);
  for (const previous of present === null ? [null] : [path, null]) {
    await removeTree(fileSystem, incompletePath, ["lock"]);
    const note = { store, folder: basename(path), lastSequence: 0, madeAt: new Date().toISOString() };
    await replaceFile(fileSystem, incompletePath, BACKUP_FILE, encodeNote(note));
    const files = new BackupFiles(fileSystem, { from, to: incompletePath, previous });
    await copyStore(files);
    const check = await checkStore({
      dataDirectory: { path: incompletePath, ...pathsIn(incompletePath), storeId: null, release: async () => {} },
      fileSystem,
      ...new RecordVerifier().inspection,
      ...(options.onProgress && { onProgress: options.onProgress }),
    });
    const { lastSequence } = check.summary;
    // The disk of the previous backup may be the one that is damaged: so everything is copied anew.
    if (!check.ok && files.hasReused) continue;
    if (!check.ok && !options.withDamage) throw damaged(check);
    if (present !== null && present.lastSequence > lastSequence) {
      throw new BackupError(
        `--to: ${path} has records up to ${present.lastSequence}, but the store ends at ${lastSequence}: name another folder`,
      );
    }
    await files.put(FORMAT_FILE, false);
    await replaceFile(fileSystem, incompletePath, BACKUP_FILE, encodeNote({ ...note, lastSequence }));
    await files.syncNames();
    await takePlace(fileSystem, target, present !== null);
    const { linkedFiles, copiedFiles, copiedBytes } = files;
    return { path, lastSequence, linkedFiles, copiedFiles, copiedBytes, check };
  }
  throw new Error("the last attempt takes nothing from the previous backup");
}

function damaged({ findings, summary }: CheckResult): BackupError {
  const [first] = findings;
  const what =
    first === undefined ? "" : `, the first: ${first.code}: ${first.file}, offset ${first.offset}: ${first.message}`;
  return new BackupError(
    `the store has ${counted(summary.damages, "piece")} of damage${what}; no backup was made: run check, or use --with-damage to copy it as it is`,
  );
}

async function takePlace(fileSystem: FileSystem, target: BackupTarget, hasBefore: boolean): Promise<void> {
  const { path, incompletePath, previousPath } = target;
  if (hasBefore) await fileSystem.rename(path, previousPath);
  await fileSystem.rename(incompletePath, path);
  await fileSystem.syncDirectory(dirname(path));
  await removeTree(fileSystem, previousPath);
}

/** What tells a store from others. @throws BackupError without a readable first segment */
async function identityOf({ dataDirectory: { metaPath }, fileSystem }: StoreReading): Promise<string> {
  const [first] = await basesIn(fileSystem, metaPath);
  if (first === undefined) throw new BackupError(`the store has no log: ${metaPath} holds no segment`);
  const { header } = await withFile(fileSystem, `${metaPath}/${segmentName(first)}`, readSegmentHeader);
  return `${first}-${header === null ? "unreadable" : header.salt.toString(16).padStart(8, "0")}`;
}

async function basesIn(fileSystem: FileSystem, metaPath: string): Promise<number[]> {
  const bases = (await fileSystem.readDirectory(metaPath)).flatMap(({ name }) => segmentBaseOf(name) ?? []);
  return bases.sort((left, right) => left - right);
}

async function copyStore(files: BackupFiles): Promise<void> {
  for (const folder of ["meta", "captures", "quarantine"]) await files.makeFolder(folder);
  const seen: Seen = { named: new NamedCaptures(), missing: new Set(), openBase: 0 };
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const before = new Set(seen.missing);
    const openBase = await copyLog(files);
    await copyCaptures(files, seen);
    // A tombstone is in the log before its file is gone. So what was missing before this log was copied is lost: the check says so.
    if ([...seen.missing].every((path) => before.has(path))) return await copyOthers(files);
    seen.openBase = openBase;
  }
  throw new BackupError(
    "retention removes captures faster than they can be copied; no backup was made: let it keep more (--retain-bytes, --retain-days)",
  );
}

/** What the passes until now have seen. So each of them is shorter than the one before, however large the store is. */
interface Seen {
  readonly named: NamedCaptures;
  /** Captures that the log names, and that neither the store nor the backup has. */
  readonly missing: Set<string>;
  /** The log before this segment has been read. */
  openBase: number;
}

/**
 * Copies the log as it is now. Only a segment that has its hint file is surely not written any more: recovery can shorten others.
 *
 * @returns the first segment that may still be written
 */
async function copyLog(files: BackupFiles): Promise<number> {
  const { dataDirectory, fileSystem } = await readStore(files.from, files.fileSystem);
  const { metaPath } = dataDirectory;
  const bases = await basesIn(fileSystem, metaPath);
  let openBase = Number.POSITIVE_INFINITY;
  for (const [at, base] of bases.entries()) {
    const [segment, hint] = [`meta/${segmentName(base)}`, `meta/${hintName(base)}`];
    if ((await files.sizeOf(hint)) !== null) continue;
    const hintBytes = await usableHint(fileSystem, metaPath, base, bases[at + 1]);
    if (hintBytes === null) {
      openBase = Math.min(openBase, base);
      await files.put(segment, false);
    } else {
      const isSame = () => hasSameHint(files, segment, hint, hintBytes);
      await files.put(segment, true, isSame);
      await files.put(hint, true, isSame);
    }
  }
  return openBase;
}

async function usableHint(fileSystem: FileSystem, metaPath: string, base: number, nextBase: number | undefined) {
  if (nextBase === undefined) return null;
  const of = await withFile(fileSystem, `${metaPath}/${segmentName(base)}`, async (file) => {
    const { header } = await readSegmentHeader(file);
    return header && { base, nextBase, salt: header.salt, segmentBytes: await file.size() };
  });
  const hint = of && (await readHint(fileSystem, metaPath, of));
  return hint?.kind === "usable" ? hint.bytes : null;
}

/** The hint file of a segment has the CRC of all its bytes. */
async function hasSameHint(
  { fileSystem, from, previous }: BackupFiles,
  segment: string,
  hint: string,
  bytes: Uint8Array,
): Promise<boolean> {
  const before = await orWhereMissing(readWholeFile(fileSystem, `${previous}/${hint}`), null);
  if (before === null || !Buffer.from(before).equals(bytes)) return false;
  const size = await orWhereMissing(fileSystem.sizeOf(`${previous}/${segment}`), null);
  return size === (await fileSystem.sizeOf(`${from}/${segment}`));
}

/** Copies the captures that the copied log names. Cuts off what a service was about to write when its last segment was copied. */
async function copyCaptures(files: BackupFiles, { named, missing, openBase }: Seen): Promise<void> {
  const { metaPath } = pathsIn(files.to);
  const readDirectory = async (folder: string) =>
    (await files.fileSystem.readDirectory(folder)).filter(({ name }) => (segmentBaseOf(name) ?? 0) >= openBase);
  const builder = new RecoveryReportBuilder();
  await walkLog({
    fileSystem: replacing(files.fileSystem, { readDirectory }),
    directory: metaPath,
    builder,
    quarantine: async () => null,
    deliversTail: true,
    onRecords: async (batch) => {
      const words: CaptureWord[] = [];
      forEachRecord(batch, (record) => void words.push(...wordsOf(named, record)));
      for (const word of words) {
        const name = `captures/${word.path}`;
        missing.delete(word.path);
        if (word.says === "removed") await files.remove(name);
        else if (!(await hasFinal(files, name, word.end))) missing.add(word.path);
      }
    },
  });
  for (const [path, end] of named.growing) {
    missing.delete(path);
    if (!(await hasGrowing(files, `captures/${path}`, end))) missing.add(path);
  }
  for (const { code, segment, offset } of builder.report.findings) {
    if (code === "tail_cut") await cut(files.fileSystem, `${metaPath}/${segment}`, offset);
  }
}

/** Puts a finished file of captures into the backup, unless a pass before did. False when there is none any more. */
async function hasFinal(files: BackupFiles, name: string, end: number): Promise<boolean> {
  const size = await orWhereMissing(files.fileSystem.sizeOf(`${files.from}/${name}`), null);
  const copied = await files.sizeOf(name);
  // Retention removed it after a pass had copied it. The tombstone comes with the next log, or is not in the backup.
  if (size === null) return copied !== null && copied >= end;
  return copied === size || (await files.put(name, true));
}

/** Puts what is named of a file into the backup. False when there is no file. */
async function hasGrowing(files: BackupFiles, name: string, end: number): Promise<boolean> {
  if (((await files.sizeOf(name)) ?? 0) === end) return true;
  if (!(await files.put(name, false))) return false;
  // No record names the bytes behind it yet. After a kill the service writes others there, and the next pass would keep the wrong ones.
  if (((await files.sizeOf(name)) ?? 0) > end) await cut(files.fileSystem, `${files.to}/${name}`, end);
  return true;
}

/** None for a record that cannot be decoded: the check reports it. */
function wordsOf(named: NamedCaptures, record: LogRecord): CaptureWord[] {
  try {
    return isOwnRecord(record.type) ? [] : named.take(record);
  } catch (error) {
    if (error instanceof RecordDecodeError) return [];
    throw error;
  }
}

/** The file is a copy, never a link. */
async function cut(fileSystem: FileSystem, path: string, sizeBytes: number): Promise<void> {
  const file = await fileSystem.open(path, "update");
  try {
    await file.truncate(sizeBytes);
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Damaged bytes that were kept, and files of the root, such as keys. */
async function copyOthers(files: BackupFiles): Promise<void> {
  const { fileSystem, from } = files;
  for (const folder of ["", "quarantine/"]) {
    for (const { name } of await orWhereMissing(fileSystem.readDirectory(`${from}/${folder}`), [])) {
      if (NOT_COPIED.has(name) || name.endsWith(TEMPORARY_SUFFIX)) continue;
      if ((await fileSystem.statusOf(`${from}/${folder}${name}`))?.kind === "file")
        await files.put(`${folder}${name}`, false);
    }
  }
}
