/** The programs as the interface lists them: all or those of one robot, newest first. */

import { uuidV7TimeUs } from "../../core/identifiers.js";
import { messagePackBytes } from "../../core/json/document-size.js";
import { lowerBound } from "../../core/lower-bound.js";
import type { ProgramDocument, ProgramState } from "../../core/run/program.js";
import { UuidTable } from "../columns/uuid-table.js";

export class ViewPrograms {
  readonly #programs = new Map<string, ProgramState>();
  /** Every program that ever existed: the runs of a deleted one stay listed. */
  readonly #everPut = new UuidTable();
  /** Ids of all programs, ascending. `#idsByRobot` has those of each robot. */
  readonly #ids: string[] = [];
  readonly #idsByRobot = new Map<string, string[]>();

  #documentBytes = 0;

  /** Creates or replaces a program. */
  put(document: ProgramDocument, timeUs: number): void {
    const { id } = document;
    const replaced = this.#programs.get(id);
    if (replaced === undefined) insertSorted(this.#ids, id);
    else this.#forget(replaced);
    for (const robotId of new Set(document.robot_ids)) {
      const ids = this.#idsByRobot.get(robotId);
      if (ids === undefined) this.#idsByRobot.set(robotId, [id]);
      else insertSorted(ids, id);
    }
    const documentBytes = messagePackBytes(document);
    this.#documentBytes += documentBytes;
    this.#programs.set(id, { document, createdAtUs: uuidV7TimeUs(id), updatedAtUs: timeUs, documentBytes });
    this.#everPut.set(id, 1);
  }

  delete(id: string): void {
    const program = this.#programs.get(id);
    if (program === undefined) return;
    this.#programs.delete(id);
    removeSorted(this.#ids, id);
    this.#forget(program);
  }

  /** Undefined for an unknown program and for a deleted one. */
  get(id: string): ProgramState | undefined {
    return this.#programs.get(id);
  }

  ids(): readonly string[] {
    return this.#ids;
  }

  get size(): number {
    return this.#programs.size;
  }

  /** Sum of `ProgramState.documentBytes` of all programs. */
  get documentBytes(): number {
    return this.#documentBytes;
  }

  /** True also for a deleted one. */
  everExisted(id: string): boolean {
    return this.#everPut.has(id);
  }

  /** Newest first. O(log n) to find the page, O(limit) to fill it. */
  list(
    robotId: string | undefined,
    offset: number,
    limit: number,
  ): { readonly total: number; readonly programs: ProgramState[] } {
    const ids = robotId === undefined ? this.#ids : (this.#idsByRobot.get(robotId) ?? []);
    const end = Math.max(0, ids.length - offset);
    const page = ids.slice(Math.max(0, end - limit), end).reverse();
    return { total: ids.length, programs: page.map((id) => this.#programs.get(id)!) };
  }

  #forget({ document, documentBytes }: ProgramState): void {
    this.#documentBytes -= documentBytes;
    for (const robotId of new Set(document.robot_ids)) {
      const ids = this.#idsByRobot.get(robotId)!;
      removeSorted(ids, document.id);
      if (ids.length === 0) this.#idsByRobot.delete(robotId);
    }
  }
}

/** The position of `id`, or where to insert it. */
function placeOf(ids: readonly string[], id: string): number {
  return lowerBound(0, ids.length, (at) => ids[at]! < id);
}

function insertSorted(ids: string[], id: string): void {
  ids.splice(placeOf(ids, id), 0, id);
}

function removeSorted(ids: string[], id: string): void {
  ids.splice(placeOf(ids, id), 1);
}
