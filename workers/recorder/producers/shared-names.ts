import { counted } from "../../../core/counted.js";
import type { Timers } from "../../../core/timers.js";

/** How long a name counts as shared after two instances last alternated. Each instance comes back within seconds. */
const SHARED_FOR_MS = 60_000;
const NAMED = 3;

/** Producer names under which several programs send by mistake. It shows when instances of one name alternate. */
export class SharedNames {
  readonly #timers: Timers;
  readonly #onChange: () => void;
  /** Each name with the timer that ends it. */
  readonly #names = new Map<string, unknown>();

  /** @param onChange called when `fault` has changed */
  constructor(timers: Timers, onChange: () => void) {
    this.#timers = timers;
    this.#onChange = onChange;
  }

  /**
   * An instance of this name is back, and since it was here another has sent, or has taken its connection.
   *
   * @returns true if the name was not shared before
   */
  alternated(name: string): boolean {
    const timer = this.#names.get(name);
    if (timer !== undefined) this.#timers.clear(timer);
    this.#names.set(
      name,
      this.#timers.set(() => {
        this.#names.delete(name);
        this.#onChange();
      }, SHARED_FOR_MS),
    );
    if (timer === undefined) this.#onChange();
    return timer === undefined;
  }

  /** Text for people; null while no name is shared. */
  get fault(): string | null {
    const [...names] = this.#names.keys();
    if (names.length === 0) return null;
    const named = names.slice(0, NAMED).join(", ");
    const more = names.length > NAMED ? ` and ${counted(names.length - NAMED, "other")}` : "";
    return `several programs send as producer ${named}${more} and take the connection from each other: give each a name of its own`;
  }

  stop(): void {
    for (const timer of this.#names.values()) this.#timers.clear(timer);
    this.#names.clear();
  }
}
