/** One change of the compiled code. */
export interface SourceChange {
  /** Below dist. */
  file: string;
  /** Stands in the file exactly once. */
  find: string;
  replace: string;
}

/** A fault, seeded into the store, that a test has to find. */
export interface Mutant extends SourceChange {
  name: string;
  /** The compiled test file below dist/test, or so many seeds of the simulation. */
  killer: string | { firstSeed: number; seeds: number };
}

const SIMULATION = { firstSeed: 1, seeds: 60 };
const EARLY = { ...SIMULATION, firstSeed: 8 }; // The first that shows what every commit tries: the seeds before cost 20 s.
const CRASHES = "faults/store/log-crash";
const RECOVERY = "storage/recovery/recovery";
const HINTS = "storage/recovery/hint-recovery";
const DAMAGE = "faults/store/log-damage";
const FULL = "faults/disk/disk-full";

/** Recovery trusts what it read after the last proof, which may be in memory alone. */
const UNPROVEN_COUNT = {
  file: "storage/recovery/recovery.js",
  find: "if (newest?.isContinuable && newest.tail.onlyMarks && newest.salt !== null) {",
  replace: `if (newest?.isContinuable && newest.salt !== null) {
      const { base, salt, tail } = newest, path = directory + "/" + newest.name;
      const file = await fileSystem.open(path, "update");
      for await (const batch of tailBatches(file, newest, salt)) await options.onRecords({ ...batch, segmentBase: base });
      report.lastSequence = tail.lastSequence;
      const segment = { base, salt, path, file, endOffset: tail.endOffset };
      const [nextSequence, lastDataSequence] = [tail.lastSequence + 1, report.provenSequence];
      return { segment, report, nextSequence, claimedSequence: lastDataSequence, lastDataSequence };
  }
  if (false) {`,
};

/**
 * The faults that a store is most likely to have, each of which would lose something or show something wrong only after a crash, on a
 * failing disk, or on a damaged one.
 */
export const STORE_MUTANTS: readonly Mutant[] = [
  // What is acknowledged, and when.
  {
    name: "the sync of a group is dropped",
    file: "storage/log/log.js",
    find: "await segment.file.datasync();\n            this.#durableSequence = group.lastSequence;",
    replace: "this.#durableSequence = group.lastSequence;",
    killer: CRASHES,
  },
  {
    name: "a group is acknowledged while it is synced",
    file: "storage/log/log.js",
    find: "await segment.file.datasync();\n            this.#durableSequence",
    replace: "segment.file.datasync().catch((error) => this.#fail(error));\n            this.#durableSequence",
    killer: EARLY,
  },
  {
    name: "a failed sync of a group is tried again",
    file: "storage/log/log.js",
    find: "await segment.file.datasync();\n            this.#durableSequence",
    replace: "await segment.file.datasync().catch(() => segment.file.datasync());\n            this.#durableSequence",
    killer: CRASHES,
  },
  {
    name: "a group that failed is dropped, and the log goes on",
    file: "storage/log/log.js",
    find: "await this.#commitGroup();",
    replace: "await this.#commitGroup().catch(() => {});",
    killer: CRASHES,
  },
  {
    name: "all that waits is acknowledged with the first group",
    file: "storage/log/record-waits.js",
    find: "this.#waiting[count].sequence <= sequence",
    replace: "true",
    killer: "storage/log/log",
  },
  {
    name: "the recorder answers with the first group all messages that are on their way",
    file: "workers/recorder/record-writer.js",
    find: "if (sequence > batch.lastSequence)\n                break;",
    replace: "",
    killer: SIMULATION,
  },
  {
    name: "an acknowledgement covers what was taken, not what is committed",
    file: "workers/cell-link/session/link-session.js",
    find: '{ kind: "ack", sequence: this.#ackDue }',
    replace: '{ kind: "ack", sequence: this.#producer.taken }',
    killer: SIMULATION,
  },
  {
    name: "an acknowledgement comes before the refusal that it covers",
    file: "workers/cell-link/session/link-session.js",
    find: 'if (refusal !== null)\n            this.#send({ kind: "refuse", sequence, body: refusal });',
    replace:
      'if (refusal !== null)\n            setImmediate(() => this.#send({ kind: "refuse", sequence, body: refusal }));',
    killer: SIMULATION,
  },
  {
    name: "a message that is on its way is taken again",
    file: "workers/cell-link/session/link-session.js",
    find: "sequence > producer.taken && sequence === producer.taken + 1",
    replace: "sequence > producer.committed",
    killer: SIMULATION,
  },
  {
    name: "durable_up_to claims the group that is being written",
    file: "storage/log/log.js",
    find: "const claim = this.#durableSequence;",
    replace: "const claim = group.lastSequence;",
    killer: CRASHES,
  },
  {
    name: "an idle mark is not written",
    file: "storage/log/log.js",
    find: "return this.#lastDataSequence > this.#claimedSequence && this.#durableSequence >= this.#lastDataSequence;",
    replace: "return false;",
    killer: DAMAGE,
  },
  // Short counts and full disks.
  {
    name: "a short count of a write is taken for all",
    file: "storage/disk/whole-files.js",
    find: "while (written < bytes.length);",
    replace: "while (false);",
    killer: CRASHES,
  },
  {
    name: "a write that finds no room is taken for done",
    file: "storage/log/segment.js",
    find: "await cutBack(segment, offset);\n        throw error;",
    replace: "return;\n        throw error;",
    killer: SIMULATION,
  },
  {
    name: "a capture that finds no room is taken for written",
    file: "workers/recorder/upkeep/disk-room.js",
    find: "if (!isNoRoom(error))\n                        throw error;",
    replace: "if (!isNoRoom(error))\n                        throw error;\n                    return undefined;",
    killer: SIMULATION,
  },
  {
    name: "a full disk ends the log",
    file: "storage/disk/file-system-error.js",
    find: "NO_ROOM_CODES.has(error.code) && REPEATABLE_OPERATIONS.has(error.operation)",
    replace: "false",
    killer: SIMULATION,
  },
  {
    name: "a sync that fails with ENOSPC is tried again",
    file: "storage/disk/file-system-error.js",
    find: '"write", "ftruncate", "rename"]',
    replace: '"write", "ftruncate", "rename", "fdatasync", "fsync"]',
    killer: FULL,
  },
  {
    name: "what a refused write left is not cut",
    file: "storage/log/segment.js",
    find: "await cutBack(segment, offset);",
    replace: "void cutBack;",
    killer: FULL,
  },
  {
    name: "what waited for room is not woken",
    file: "workers/recorder/upkeep/disk-room.js",
    find: "for (const resolve of this.#wake.splice(0))\n            resolve();",
    replace: "",
    killer: SIMULATION,
  },
  // Rotation.
  {
    name: "a new segment is renamed before its bytes are synced",
    file: "storage/log/segment.js",
    find: "await created.datasync();",
    replace: "",
    killer: CRASHES,
  },
  {
    name: "the folder is not synced after a rotation",
    file: "storage/log/segment.js",
    find: "await fileSystem.syncDirectory(directory);\n    // Opened again",
    replace: "// Opened again",
    killer: CRASHES,
  },
  {
    name: "a segment begins before what precedes it is synced",
    file: "storage/log/log.js",
    find: "async #rotate({ base, salt, start }) {\n        await this.#syncAll();",
    replace: "async #rotate({ base, salt, start }) {",
    killer: CRASHES,
  },
  {
    name: "an opening state without producers",
    file: "workers/recorder/recorder-state.js",
    find: "producers: this.producers.entries(),",
    replace: "producers: [],",
    killer: "workers/recorder/recorder-state",
  },
  {
    name: "an opening state without refusals",
    file: "workers/recorder/producers/producer-table.js",
    find: "[...producer.refusals].map(([sequence, stored]) => [sequence, stored.refusal]),",
    replace: "[],",
    killer: "workers/recorder/recorder-state",
  },
  {
    name: "an opening state without the last run id",
    file: "workers/recorder/recorder-state.js",
    find: "lastRunId: this.lastRunId,\n            producers",
    replace: "lastRunId: null,\n            producers",
    killer: "workers/recorder/recorder-state",
  },
  // Captures.
  {
    name: "captures are written, and not synced before their record",
    file: "storage/log/log.js",
    find: "(isFull ? need.makeDurable() : need.whenWritten())",
    replace: "need.whenWritten()",
    killer: SIMULATION,
  },
  {
    name: "a record does not wait for its capture",
    file: "storage/log/log.js",
    find: "await Promise.all([...group.needs].map(",
    replace: "void Promise.allSettled([...group.needs].map(",
    killer: SIMULATION,
  },
  {
    name: "the name of a capture file is not made durable",
    file: "storage/captures/capture-file.js",
    find: "await this.#host.syncName(this.path);",
    replace: "",
    killer: SIMULATION,
  },
  {
    name: "the folder of a month is not made durable",
    file: "storage/captures/capture-store.js",
    find: "await this.#fileSystem.syncDirectory(this.#capturesPath);",
    replace: "",
    killer: SIMULATION,
  },
  {
    name: "names of capture files that another process left are taken for durable",
    file: "storage/captures/capture-store.js",
    find: "if (!isNew)",
    replace: "if (false)",
    killer: "storage/captures/capture-store",
  },
  {
    name: "a capture file made in place of one that is gone is taken for it",
    file: "storage/captures/capture-store.js",
    find: "if (sizeBytes === 0)",
    replace: "if (sizeBytes === 0 && keptBytes === 0)",
    killer: "storage/captures/capture-store",
  },
  {
    name: "a failed sync of captures is tried again",
    file: "storage/captures/capture-file.js",
    find: "await file.datasync();",
    replace: "await file.datasync().catch(() => file.datasync());",
    killer: SIMULATION,
  },
  {
    name: "a failed write of captures is forgotten",
    file: "storage/captures/capture-file.js",
    find: "return writeFully(file, payload, offset, this.path);\n            });\n        }\n        catch (error) {\n            this.#host.fail(error);",
    replace: "return writeFully(file, payload, offset, this.path);\n            });\n        }\n        catch {",
    killer: SIMULATION,
  },
  {
    name: "a capture file is closed without a sync of its last bytes",
    file: "storage/captures/capture-file.js",
    find: "if (this.#synced < target)\n            await this.#syncUpTo(target, handle.file);",
    replace: "this.#synced = target;",
    killer: SIMULATION,
  },
  {
    name: "after a restart a run's captures are stored over those it has",
    file: "workers/recorder/captures/payload-files.js",
    find: "storedEnd(run, kind)",
    replace: "0",
    killer: SIMULATION,
  },
  {
    name: "a failed sync of a capture file does not end the recorder at once",
    file: "workers/recorder/upkeep/store-guards.js",
    find: "capturesPath: directory.capturesPath,\n        onFailure: options.onFailure,",
    replace: "capturesPath: directory.capturesPath,",
    killer: "workers/recorder/upkeep/retention",
  },
  // What is believed after a crash.
  {
    name: "the CRC of a header is not looked at",
    file: "storage/log/record-format.js",
    find: " && storedHeaderCrc(view, at) === headerCrc(bytes, at, salt, offset)",
    replace: "",
    killer: "storage/recovery/damaged-records",
  },
  {
    name: "the CRC of the content is not looked at",
    file: "storage/log/record-format.js",
    find: "=== header.contentCrc;",
    replace: "!== -1;",
    killer: DAMAGE,
  },
  {
    name: "the offset is not in the CRC of a header",
    file: "storage/log/record-format.js",
    find: "(salt ^ offset) >>> 0",
    replace: "salt",
    killer: "storage/log/record-format",
  },
  {
    name: "the salt is not in the CRC of a header",
    file: "storage/log/record-format.js",
    find: "(salt ^ offset) >>> 0",
    replace: "offset",
    killer: "storage/recovery/damaged-records",
  },
  {
    name: "the salt is the same for every segment",
    file: "storage/recovery/recovery.js",
    find: "crypto.getRandomValues(new Uint32Array(1))[0] ?? 0",
    replace: "1",
    killer: "storage/log/log",
  },
  { ...UNPROVEN_COUNT, name: "records that are not proven count without being written anew", killer: CRASHES },
  {
    ...UNPROVEN_COUNT,
    name: "records that are not proven count without being written anew, and a restart comes before the power cut",
    killer: "faults/store/store-points",
  },
  {
    name: "what recovery cuts off is not synced",
    file: "storage/recovery/recovery.js",
    find: "await file.truncate(sizeBytes);\n        await file.datasync();",
    replace: "await file.truncate(sizeBytes);",
    killer: RECOVERY,
  },
  {
    name: "what a killed recovery has cut off is taken for durable",
    file: "storage/recovery/recovery.js",
    find: "if (end.beforeNewest !== null)",
    replace: "if (false)",
    killer: RECOVERY,
  },
  {
    name: "the tail is not copied into the new segment",
    file: "storage/recovery/recovery.js",
    find: "return await copyTail(options, newest, newest.salt, { file, path, salt, endOffset });",
    replace: "return endOffset;",
    killer: RECOVERY,
  },
  {
    name: "the tail is cut before its copy is durable",
    file: "storage/recovery/recovery.js",
    find: "const segment = await (options.room ?? FAILS_WITHOUT_ROOM).attempt(create);",
    replace:
      "const begun = (options.room ?? FAILS_WITHOUT_ROOM).attempt(create);\n" +
      '    if (tail !== null) await shorten(fileSystem, [directory, newest.name].join("/"), newest.tail.offset);\n' +
      "    const segment = await begun;",
    killer: CRASHES,
  },
  {
    name: "marks at the end are not written once more before they count",
    file: "storage/recovery/recovery.js",
    find: "await file.datasync();\n        }",
    replace: "}",
    killer: RECOVERY,
  },
  {
    name: "the newest segment is gone on in before its name is durable",
    file: "storage/recovery/recovery.js",
    find: "await fileSystem.syncDirectory(directory);\n    const file = await fileSystem.open(path",
    replace: "const file = await fileSystem.open(path",
    killer: RECOVERY,
  },
  {
    name: "a gap in the sequence numbers is no damage",
    file: "storage/recovery/tail-or-damage.js",
    find: "const hasGap = batch.firstSequence > this.#expected;",
    replace: "const hasGap = false;",
    killer: "storage/recovery/damaged-records",
  },
  {
    name: "a segment that ends early is no damage",
    file: "storage/recovery/tail-or-damage.js",
    find: "damage !== null || !this.#hasOpening || this.#expected <= this.#proven) {\n            this.#isContinuable",
    replace: "damage !== null || !this.#hasOpening) {\n            this.#isContinuable",
    killer: "storage/recovery/damaged-records",
  },
  {
    name: "a newest segment shorter than its header is taken for an interrupted rotation",
    file: "storage/recovery/log-walk.js",
    find: 'walk.find("segment_unreadable", name, place, base, nextBase === undefined ? null : nextBase - 1, kept);',
    replace:
      "if (nextBase !== undefined || sizeBytes >= 64)\n" +
      '        walk.find("segment_unreadable", name, place, base, nextBase === undefined ? null : nextBase - 1, kept);',
    killer: "storage/recovery/unreadable-segments",
  },
  {
    name: "sequence numbers of a segment that cannot be read any more are used again",
    file: "storage/log/segment.js",
    find: "const most = Math.max(MOST_RECORDS, Math.ceil(sizeBytes / RECORD_HEADER_BYTES));",
    replace: "if (true) return base + Math.ceil(sizeBytes / 48);\n    const most = 0;",
    killer: "storage/recovery/unreadable-segments",
  },
  {
    name: "a newest segment that ends before its opening state is taken for one that never held more",
    file: "storage/recovery/tail-or-damage.js",
    find: "return this.#isNewest && !this.#hasOpening;",
    replace: "return false;",
    killer: "storage/recovery/unreadable-segments",
  },
  {
    name: "damage to what is proven is taken for a torn tail",
    file: "storage/recovery/tail-or-damage.js",
    find: "Math.max(claimed, base - 1, lacksBytes",
    replace: "Math.max(base - 1, lacksBytes",
    killer: DAMAGE,
  },
  {
    name: "damaged bytes are not copied to quarantine",
    file: "storage/recovery/recovery.js",
    find: "room.attempt(() => quarantineBytes(fileSystem, quarantineDirectory, segment, file, offset, lengthBytes))",
    replace: "Promise.resolve(null)",
    killer: RECOVERY,
  },
  {
    name: "a copy in quarantine is not synced",
    file: "storage/recovery/quarantine.js",
    find: "await target.datasync();",
    replace: "",
    killer: RECOVERY,
  },
  {
    name: "what an earlier recovery has copied counts twice",
    file: "storage/recovery/tail-or-damage.js",
    find: "const endSequence = nextBase ?? Number.POSITIVE_INFINITY;",
    replace: "const endSequence = Number.POSITIVE_INFINITY;",
    killer: RECOVERY,
  },
  {
    name: "an error of a read is taken for the end of the file",
    file: "storage/disk/whole-files.js",
    find: "const count = await file.read(total === 0 ? into : into.subarray(total), position + total);",
    replace:
      "const count = await file.read(total === 0 ? into : into.subarray(total), position + total).catch(() => 0);",
    killer: SIMULATION,
  },
  {
    name: "a file that is replaced is not synced before its rename",
    file: "storage/disk/whole-files.js",
    find: "await writeFully(file, bytes, 0, temporary);\n        await file.datasync();",
    replace: "await writeFully(file, bytes, 0, temporary);",
    killer: "storage/disk/data-directory",
  },
  {
    name: "the folders of a store are not made durable",
    file: "storage/disk/data-directory.js",
    find: "await fileSystem.syncDirectory(path);",
    replace: "",
    killer: "storage/disk/data-directory",
  },
  {
    name: "folders above a new store are not made durable",
    file: "storage/disk/data-directory.js",
    find: "await syncAbove(fileSystem, dirname(path));",
    replace: "void syncAbove;",
    killer: "storage/disk/data-directory",
  },
  {
    name: "the directory's lock is not asked for",
    file: "storage/disk/directory-lock.js",
    find: "if (rival === null) {",
    replace: "if (true) {",
    killer: "faults/store/directory-lock",
  },
  {
    name: "check does not compare captures with their CRCs",
    file: "storage/captures/capture-reader.js",
    find: "else if (crc !== extent.crc32) {",
    replace: "else if (false) {",
    killer: "storage/repair/check-store",
  },
  {
    name: "check does not miss captures",
    file: "storage/repair/check-store.js",
    find: "for (const { finding, count } of this.#missing.values())",
    replace: "for (const { finding, count } of [])",
    killer: "storage/repair/check-store",
  },
  {
    name: "check ends where a folder cannot be listed or a size not be asked for",
    file: "storage/repair/check-store.js",
    find: "tolerantLookups(options.fileSystem ?? nodeFileSystem, this.#onUnreadable)",
    replace: "options.fileSystem ?? nodeFileSystem",
    killer: "faults/disk/read-errors",
  },
  {
    name: "check ends at a segment that cannot be opened",
    file: "storage/repair/check-store.js",
    find: "tolerantOpens(this.#fileSystem, this.#onUnreadable)",
    replace: "this.#fileSystem",
    killer: "faults/disk/read-errors",
  },
  {
    name: "an export ends at a block that the disk does not give",
    file: "storage/view/read-run.js",
    find: "fileSystem: disk,",
    replace: "fileSystem,",
    killer: "faults/disk/read-errors",
  },
  {
    name: "inspect ends at a segment that cannot be opened",
    file: "storage/disk/tolerant-reads.js",
    find: "return tolerantOpens(tolerantReads(lookups, onUnreadable), onUnreadable);",
    replace: "return tolerantReads(lookups, onUnreadable);",
    killer: "faults/disk/read-errors",
  },
  {
    name: "bytes that the disk does not give are taken for a torn tail",
    file: "storage/recovery/tail-or-damage.js",
    find: "lacksBytes ? last : 0",
    replace: "0",
    killer: "faults/disk/read-errors",
  },
  {
    name: "check calls captures strays that only an unread segment names",
    file: "storage/repair/check-files.js",
    find: "isLogRead ? UNNAMED : UNJUDGED",
    replace: "UNNAMED",
    killer: "faults/disk/read-errors",
  },
  {
    name: "who only looks over a store is refused for a segment that the disk says nothing of",
    file: "storage/disk/directory-condition.js",
    find: "if (forCaptures || !isOfDisk)",
    replace: "if (true)",
    killer: "faults/disk/read-errors",
  },
  // Retention.
  {
    name: "captures are unlinked before their tombstone is durable",
    file: "workers/recorder/upkeep/retention.js",
    find: "await whenDurable(lastSequence);",
    replace: "void whenDurable(lastSequence).catch(() => {});",
    killer: EARLY,
  },
  {
    name: "captures are unlinked before their tombstone is written",
    file: "workers/recorder/upkeep/retention.js",
    find: "while (!this.#isStopped && !this.#isBlocked && (await this.#markBatch())) {",
    replace:
      "for (let kept; (kept = this.#captureIndex.next(null, this.#options.policy.bytes, this.#options.lastTimeUs())) !== undefined; ) {\n" +
      "            const run = await this.#read(kept);\n" +
      "            if (run !== undefined) await this.#options.removeCaptures([run.id]);\n" +
      "            break;\n        }\n" +
      "        while (!this.#isStopped && !this.#isBlocked && (await this.#markBatch())) {",
    killer: SIMULATION,
  },
  {
    name: "a file that cannot be unlinked ends the removal of the others",
    file: "storage/captures/capture-store.js",
    find: "kept.push(keptFile(runId, error));\n            }\n            months.set",
    replace: "throw error;\n            }\n            months.set",
    killer: "storage/captures/capture-store",
  },
  {
    name: "retention forgets a file that could not be unlinked",
    file: "workers/recorder/upkeep/retention.js",
    find: "await this.#unlink(isRetry ? this.#unfinished : this.#captureIndex.unfinished());",
    replace: "await this.#unlink(this.#captureIndex.unfinished());",
    killer: "workers/recorder/upkeep/retention-batches",
  },
  {
    name: "the readers are not asked to let go",
    file: "workers/recorder/upkeep/retention.js",
    find: "await letGo(runIds);\n        if (this.#isStopped)",
    replace: "if (this.#isStopped)",
    killer: "workers/recorder/upkeep/retention-batches",
  },
  {
    name: "the removal of captures is not made durable",
    file: "storage/captures/capture-store.js",
    find: "await this.#syncDirectory(path)",
    replace: "true",
    killer: "storage/captures/capture-store",
  },
  {
    name: "a failed sync of a removal is tried again later",
    file: "storage/captures/capture-store.js",
    find: "this.#fail(error);\n            throw error;",
    replace: "throw error;",
    killer: "storage/captures/capture-store",
  },
  {
    name: "what a crash left of a removal is not taken up",
    file: "workers/recorder/upkeep/retention.js",
    find: "await this.#unlink(isRetry ? this.#unfinished : this.#captureIndex.unfinished());",
    replace: "",
    killer: SIMULATION,
  },

  {
    name: "what recovery had copied is cut before the copy's name is durable",
    file: "storage/recovery/recovery.js",
    find: "if (end.superseded.length > 0)\n        await fileSystem.syncDirectory(directory);",
    replace: "",
    killer: CRASHES,
  },
  // Hint files: a shortcut, and never more.
  {
    name: "a hint file is written of the segment that is still written",
    file: "workers/recorder/upkeep/hint-files.js",
    find: "this.#queue.push({ base: this.#newestBase, nextBase: segmentBase });",
    replace: "this.#queue.push({ base: segmentBase, nextBase: this.#options.log.nextSequence });",
    killer: "workers/recorder/upkeep/hint-files",
  },
  {
    name: "a hint file is trusted over its segment, whose header is damaged",
    file: "storage/recovery/hint-walk.js",
    find: "if (header === null || damagedCopy !== null || header.base !== base)",
    replace: "if (header === null)",
    killer: HINTS,
  },
  {
    name: "the hint file of another segment is taken",
    file: "storage/recovery/read-hint.js",
    find: "if (head.base !== of.base || head.salt !== of.salt)",
    replace: "if (false)",
    killer: HINTS,
  },
  {
    name: "the hint file of another store's segment is taken",
    file: "storage/recovery/read-hint.js",
    find: "head.base !== of.base || head.salt !== of.salt",
    replace: "head.base !== of.base",
    killer: HINTS,
  },
  {
    name: "a stale hint file is taken: its segment went on, as after a crash at a rotation",
    file: "storage/recovery/read-hint.js",
    find: "if (head.lastSequence !== of.nextBase - 1 || head.segmentBytes !== of.segmentBytes)",
    replace: "if (false)",
    killer: HINTS,
  },
  {
    name: "the CRC of a hint file's entries is skipped",
    file: "storage/log/hint-format.js",
    find: "if (head.contentCrc !== crc32(bytes.subarray(HEAD_BYTES)))",
    replace: "if (false)",
    killer: "storage/log/hint-format",
  },
  {
    name: "a hint file lacks an entry: of a run that goes on",
    file: "storage/recovery/hint-choice.js",
    find: "this.#addOpen(index.runId, record, location);",
    replace: "",
    killer: "storage/recovery/hint-files",
  },
  {
    name: "a hint file lacks an entry: of a run that has ended",
    file: "storage/recovery/hint-choice.js",
    find: "this.#add(record, location, index.captures.isOpen)",
    replace: "-1",
    killer: "storage/recovery/hint-files",
  },
  {
    name: "a hint file lacks an entry: a row that a later record of the segment does not replace",
    file: "storage/recovery/hint-choice.js",
    find: "if (left === 0)",
    replace: "if (true)",
    killer: "storage/recovery/hint-choice",
  },
  {
    name: "a hint file lacks the body of a run with artefacts still to be made",
    file: "storage/recovery/hint-choice.js",
    find: "index.captures.isOpen",
    replace: "false",
    killer: "storage/recovery/hint-choice",
  },
  {
    name: "hint files are used though the newest segment does not say what they leave out",
    file: "storage/recovery/read-hint.js",
    find: "if (isIntact)",
    replace: "if (true)",
    killer: "storage/recovery/hint-files",
  },
  {
    name: "a hint file gets its name before it is synced",
    file: "storage/recovery/make-hint.js",
    find: "await file.datasync();",
    replace: "",
    killer: "workers/recorder/upkeep/hint-files",
  },
  {
    name: "a hint file's name is not synced",
    file: "storage/recovery/make-hint.js",
    find: "await syncNames();",
    replace: "",
    killer: "workers/recorder/upkeep/hint-files",
  },
  {
    name: "a hint file is made of a damaged segment",
    file: "storage/recovery/hint-walk.js",
    find: "const isIntact = report.corruptionCount === corruptionCount;",
    replace: "const isIntact = true;",
    killer: HINTS,
  },
  {
    name: "a damaged hint file is made again, and nobody keeps what tells of the disk",
    file: "storage/recovery/hint-walk.js",
    find: "(file) => quarantine(name, file, 0, lengthBytes)",
    replace: "async () => null",
    killer: HINTS,
  },
  {
    name: "check does not compare hint files with their segments",
    file: "storage/repair/check-hints.js",
    find: 'if (hint?.kind === "usable" &&',
    replace: "if (false &&",
    killer: "storage/repair/check-hints",
  },
  // What somebody did to the files beside the service.
  {
    name: "a stray copy of a segment counts as one",
    file: "storage/recovery/stray-segments.js",
    find: "if (isCopy && (await isNeedless(base, before)))",
    replace: "if (false)",
    killer: RECOVERY,
  },
  {
    name: "a copy under a number that the log needs is set aside unjudged",
    file: "storage/recovery/stray-segments.js",
    find: "if (isCopy && (await isNeedless(base, before)))",
    replace: "if (isCopy)",
    killer: "storage/recovery/unreadable-segments",
  },
  {
    name: "a stray copy's name in quarantine is not synced, the one that it loses is",
    file: "storage/recovery/quarantine.js",
    find: "await fileSystem.syncDirectory(quarantineDirectory);",
    replace: "",
    killer: RECOVERY,
  },
  {
    name: "a stray copy is set aside without a sync",
    file: "storage/recovery/quarantine.js",
    find: "await fileSystem.syncDirectory(quarantineDirectory);\n    await fileSystem.syncDirectory(directory);",
    replace: "",
    killer: RECOVERY,
  },
  {
    name: "what a recovery that was killed put in quarantine is taken for durable",
    file: "storage/recovery/recovery.js",
    find: "await fileSystem.syncDirectory(quarantineDirectory);",
    replace: "",
    killer: RECOVERY,
  },
  {
    name: "a stray copy loses its name before it has one in quarantine",
    file: "storage/recovery/quarantine.js",
    find: "await fileSystem.syncDirectory(quarantineDirectory);\n    await fileSystem.syncDirectory(directory);",
    replace: "await fileSystem.syncDirectory(directory);\n    await fileSystem.syncDirectory(quarantineDirectory);",
    killer: RECOVERY,
  },
  {
    name: "nobody looks whether the newest segment has its name",
    file: "workers/recorder/upkeep/store-watch.js",
    find: "await this.#options.log()?.verifyName();",
    replace: "",
    killer: "workers/recorder/upkeep/store-watch",
  },
  {
    name: "nobody looks whether a capture file has its name",
    file: "workers/recorder/upkeep/store-watch.js",
    find: "await this.#options.captures.verifyNames();",
    replace: "",
    killer: "workers/recorder/upkeep/store-watch",
  },
  {
    name: "any file of the segment's name is taken for it",
    file: "storage/log/log.js",
    find: "isNamed = status?.identity === (await segment.file.identity());",
    replace: "isNamed = status !== null;",
    killer: "workers/recorder/upkeep/store-watch",
  },
  {
    name: "what stands in a data directory is not looked at before it is changed",
    file: "storage/disk/data-directory.js",
    find: 'await requireUsable(fileSystem, path, { forCaptures: creates, access: "change" });',
    replace: "",
    killer: "contract/start/bad-data-directory",
  },
];
