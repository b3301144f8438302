import { since } from "../../../core/health.js";
import type { StorageErrorData } from "../../../storage/storage-error.js";

/** Whether the recorder takes messages, and why not. Once recording has ended, only a restart can begin it again. */
export class RecordingStatus {
  readonly #wallUs: () => number;
  readonly #onEnd: (message: string) => void;
  #unavailable: string | null = "the service is starting";
  #failure: string | null = null;
  #stopFailure: string | null = null;

  /** @param options.onEnd called once, when recording ends */
  constructor(options: { wallUs(): number; onEnd(message: string): void }) {
    this.#wallUs = options.wallUs;
    this.#onEnd = options.onEnd;
  }

  /** Why no message is taken, for people; null while messages are taken. */
  get unavailable(): string | null {
    return this.#unavailable;
  }

  /** What ended recording, and since when; null while it goes on. */
  get failure(): string | null {
    return this.#failure;
  }

  /**
   * What a stop reports: the failure that ended recording, and since when. It is null if there was none. It is also
   * null if recording ended only because the stop found no room for messages that were not acknowledged.
   */
  get stopFailure(): string | null {
    return this.#stopFailure;
  }

  opened(): void {
    this.#unavailable = null;
  }

  stopping(): void {
    this.#unavailable ??= "the service is stopping";
  }

  /** The log or a capture file takes no more. */
  storeFailed({ message, params }: StorageErrorData): void {
    if (params.without_room === true) this.#end(message);
    else this.fail(message);
  }

  /** Ends recording for a failure. */
  fail(message: string): void {
    this.#stopFailure ??= since(this.#wallUs(), message);
    this.#end(message);
  }

  #end(message: string): void {
    if (this.#failure !== null) return;
    this.#failure = since(this.#wallUs(), message);
    this.#unavailable = message;
    this.#onEnd(message);
  }
}
