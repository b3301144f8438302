import { LIMITS } from "../../../core/limits.js";
import { RepeatedLogLines } from "../../../core/repeated-log-lines.js";
import { clockFault } from "../../../core/service-clock.js";
import type { Timers } from "../../../core/timers.js";
import { LinkServer } from "../../cell-link/link-server.js";
import type { IncomingMessage, MessageIntake, ProducerProgress } from "../../cell-link/message-intake.js";
import type { RecordWriter } from "../record-writer.js";
import type { LogLine, RecorderOptions, RecorderReady } from "../recorder-messages.js";
import type { RecorderState } from "../recorder-state.js";
import type { RunEndings } from "../run-endings.js";
import { causeOf, type LogLines } from "../status/log-lines.js";
import type { RecordingStatus } from "../status/recording-status.js";
import { SharedNames } from "./shared-names.js";

const DAY_US = 86_400_000_000;
/** As many as one record can hold. A new name needs only one place. */
const FORGOTTEN_AT_ONCE = 100;

export interface ProducerLinkOptions extends LogLines {
  options: Pick<RecorderOptions, "serviceVersion" | "cellSocketPath" | "cellSocketAccess" | "cellListen" | "cellToken">;
  timers: Timers;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  status: RecordingStatus;
  endings: RunEndings;
  state(): RecorderState;
  /** Throws before the log is open. */
  writer(): RecordWriter;
  /** Reports an error in health if it is a shortage. @returns whether it is one */
  noteShortage(error: unknown): boolean;
  /** Called when health may have changed. */
  onChange(): void;
}

/** The recorder's side of the cell link: starts its server, knows the producers, and hands their messages to the writer. */
export class ProducerLink implements MessageIntake {
  readonly server: LinkServer;
  readonly #options: ProducerLinkOptions;
  readonly #sharedNames: SharedNames;
  /** Log lines that any connection can cause. */
  readonly #lines: RepeatedLogLines<LogLine>;

  constructor(options: ProducerLinkOptions) {
    this.#options = options;
    const { timers, noteShortage, line, onChange } = options;
    this.#sharedNames = new SharedNames(timers, onChange);
    this.#lines = new RepeatedLogLines(timers, ({ level, message, fields }, count) => {
      line(level, message, count === undefined ? fields : { ...fields, count });
    });
    this.server = new LinkServer({
      intake: this,
      timers,
      socketAccess: options.options.cellSocketAccess,
      report: (error, producer) => {
        // A producer that was refused for this reason tries again and again. One line for all attempts is enough.
        if (noteShortage(error)) return;
        this.#line("error", "a message could not be taken", producer ?? "", { producer, cause: causeOf(error) });
      },
      wrongToken: (address) => this.#line("warn", "wrong token for the cell link", address, { address }),
    });
  }

  /** Producer names under which several programs send, for people; null if each program has its own. */
  get sharedNamesFault(): string | null {
    return this.#sharedNames.fault;
  }

  /**
   * Listens for producers.
   *
   * @param listenOnSocket replaces the Unix socket in a simulation
   * @returns where it listens
   * @throws LinkListenError
   */
  async listen(
    defaultSocketPath: string,
    listenOnSocket?: (server: LinkServer) => void,
  ): Promise<Pick<RecorderReady, "cellSocketPath" | "cellListen">> {
    const { cellSocketPath, cellListen, cellToken } = this.#options.options;
    const path = cellSocketPath ?? defaultSocketPath;
    if (listenOnSocket === undefined) await this.server.listenOnSocket(path);
    else listenOnSocket(this.server);
    if (cellListen === null) return { cellSocketPath: path, cellListen: null };
    if (cellToken === null || cellToken === "") throw new Error("cellListen needs a cellToken");
    const { host } = cellListen;
    const port = await this.server.listenOnTcp(host, cellListen.port, cellToken);
    return { cellSocketPath: path, cellListen: { host, port } };
  }

  /** Sends the last answers and ends all connections; after `server.stopReading`. */
  async close(): Promise<void> {
    await this.server.close();
    this.#sharedNames.stop();
    this.#lines.flush();
  }

  get unavailable(): string | null {
    return this.#options.status.unavailable;
  }

  get serviceVersion(): string {
    return this.#options.options.serviceVersion;
  }

  get lastRunId(): string | null {
    return this.#options.state().lastRunId;
  }

  producer(name: string): ProducerProgress | undefined {
    const { producers } = this.#options.state();
    const known = producers.getOrAdd(name);
    if (known !== undefined || !this.#forgetUnused()) return known;
    return producers.getOrAdd(name);
  }

  /** Forgets names that have long been unused. @returns false if it forgot none */
  #forgetUnused(): boolean {
    const { state, wallUs, writer, line, report } = this.#options;
    const { producers, lastTimeUs } = state();
    const nowUs = wallUs();
    // While a clock is known to be wrong, no name counts as old.
    if (clockFault(lastTimeUs, nowUs) !== null) return false;
    const unused = producers.unusedSince(nowUs - LIMITS.producerUnusedDays * DAY_US);
    const names = unused.filter((name) => !this.server.isConnected(name)).slice(0, FORGOTTEN_AT_ONCE);
    const [first] = names;
    if (first === undefined) return false;
    try {
      writer().forgetProducers(names);
    } catch (error) {
      report("unused producer names could not be forgotten", error, {});
      return false;
    }
    line("info", "forgot producer names that are long unused", { count: names.length, first });
    return true;
  }

  connected({ name, committed }: ProducerProgress): void {
    const { endings, onChange } = this.#options;
    endings.producerBack(name);
    this.#line("info", "producer connected", name, { producer: name, committed });
    onChange();
  }

  alternated({ name }: ProducerProgress): void {
    if (!this.#sharedNames.alternated(name)) return;
    const message = "several programs send under one producer name: give each program its own name";
    this.#options.line("warn", message, { producer: name });
  }

  disconnected({ name, committed }: ProducerProgress): void {
    const { state, endings, onChange } = this.#options;
    state().producers.forgetUnused(name);
    endings.producerAway(name);
    this.#line("info", "producer disconnected", name, { producer: name, committed });
    onChange();
  }

  take(message: IncomingMessage): void {
    this.#options.writer().take(message);
  }

  /** @param cause the name or address whose lines are counted. A line that represents several has no fields. */
  #line(level: LogLine["level"], message: string, cause: string, fields: LogLine["fields"]): void {
    this.#lines.write(message, cause, (isToldApart) => ({ level, message, fields: isToldApart ? fields : {} }));
  }
}
