import { LRUCache } from "lru-cache";
import { LIMITS } from "../../core/limits.js";
import { ServiceError } from "../../core/service-errors.js";
import type { FindingQuery } from "../../storage/findings/finding-query.js";
import type { View } from "../../storage/view/view.js";
import type { MakeArtefact } from "../downloads/generated-files.js";
import type { PieceRequest } from "../downloads/generated-stream.js";
import { keptBytes } from "../replies/compressed-reply.js";
import { tagOfHash } from "../replies/conditional-reply.js";
import { jsonBytesReply, type Reply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";
import { SharedWork } from "./shared-work.js";
import type { ThreadSlices } from "./thread-slices.js";

/** Cache of answers with their compressed forms: some hundred with ten checks, or one with 10,000 names. */
const KEPT_BYTES = 64 * 1024 * 1024;
/** An answer counts as so much work: at most sixteen wait at a time (shared-work.ts). */
const WORK_BYTES = 16 * 1024 * 1024;

/** A question, without what the service adds. */
export type StatisticsQuestion = Omit<FindingQuery, "dataDirectory" | "untilSequence">;

export interface ProgramStatisticsOptions {
  view: View;
  /** Runs a task of the pool. */
  make: MakeArtefact;
  slices: ThreadSlices;
  /** Path of the store. */
  dataDirectory: string;
}

/**
 * Statistics of programs, kept until another run of the program ends. The pool makes them, one after the other, and each once
 * for all clients that wait for it.
 */
export class ProgramStatistics {
  readonly make: MakeArtefact;
  readonly #view: View;
  readonly #dataDirectory: string;
  readonly #work: SharedWork;
  readonly #kept = new LRUCache<string, Reply>({ maxSize: KEPT_BYTES, sizeCalculation: keptBytes });

  constructor({ view, make, slices, dataDirectory }: ProgramStatisticsOptions) {
    this.make = make;
    this.#view = view;
    this.#dataDirectory = dataDirectory;
    this.#work = new SharedWork(slices);
  }

  /** The question about the store as the view shows it now. */
  now(question: StatisticsQuestion): FindingQuery {
    return { ...question, dataDirectory: this.#dataDirectory, untilSequence: this.#view.fold.shownSequence };
  }

  /**
   * Makes the findings files that are missing, each as a task of its own: a task that had to read the whole log without them
   * would hold its thread for minutes, and a machine with few cores has only one for clients. After a start the upkeep makes them too,
   * on another thread, the oldest first (findings-upkeep.ts).
   */
  async prepare(request: PieceRequest): Promise<void> {
    const input = { dataDirectory: this.#dataDirectory, newestFirst: true };
    while ((await this.make("makeFindings", input, request)).hasMade);
  }

  /** @throws ServiceError `invalid_parameter` for more names than an answer may have, `unavailable` */
  get(question: StatisticsQuestion, client: Pick<HandlerRequest, "gone">): Reply | Promise<Reply> {
    const { programId, sinceUs, untilUs, serialNumber, check } = question;
    const ended = this.#view.endedRunCount(programId);
    const key = JSON.stringify([programId, ended, sinceUs, untilUs, serialNumber, check]);
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const query = this.now(question);
    return this.#work.get(key, WORK_BYTES, client.gone(), async () => {
      // Made for a client that has left, while this one waited its turn.
      const meanwhile = this.#kept.get(key);
      if (meanwhile !== undefined) return meanwhile;
      // If the first answer takes longer than its client waits, it is kept for the next one.
      const request = { signal: undefined, isContinued: true };
      await this.prepare(request);
      const answer = await this.make("statistics", { query }, request);
      if (answer.json === null) throw tooManyNames();
      const reply = jsonBytesReply(answer.json, true);
      reply.etag = tagOfHash(answer.sha1);
      this.#kept.set(key, reply);
      return reply;
    });
  }
}

export function tooManyNames(): ServiceError {
  const most = LIMITS.statisticsNames;
  return new ServiceError(
    "invalid_parameter",
    `the program's checks, or its defects, have more than ${most} different names in this time: ask for one check, or for less time`,
    {
      field: "check",
      in: "query",
      value: null,
      allowed: `the name of one check, or a time with at most ${most} names`,
    },
  );
}
