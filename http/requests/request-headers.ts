/** A browser's are some fifteen, a program's half of that. */
const FIRST_LINES = 8;

/** The header lines of one request in the order they came; names in lower case. */
export class RequestHeaders {
  /** Names and values by turns; made for as many as most requests have, since growing costs as much as all the rest. */
  readonly #lines: string[] = new Array(FIRST_LINES * 2);
  #end = 0;
  /** Bit n: a name has length n, modulo 32. Most names that are asked for are not there; this says so without looking at the lines. */
  #lengths = 0;

  add(name: string, value: string): void {
    this.#lines[this.#end++] = name;
    this.#lines[this.#end++] = value;
    this.#lengths |= 1 << name.length;
  }

  /** Undefined when absent, which is not the same as empty; several lines joined by a comma (RFC 9110, section 5.3). */
  get(name: string): string | undefined {
    if ((this.#lengths & (1 << name.length)) === 0) return undefined;
    const lines = this.#lines;
    const end = this.#end;
    let found: string | undefined;
    for (let i = 0; i < end; i += 2) {
      if (lines[i] === name) found = found === undefined ? (lines[i + 1] as string) : `${found}, ${lines[i + 1]}`;
    }
    return found;
  }

  /** How many lines have this name. */
  count(name: string): number {
    if ((this.#lengths & (1 << name.length)) === 0) return 0;
    const lines = this.#lines;
    const end = this.#end;
    let count = 0;
    for (let i = 0; i < end; i += 2) if (lines[i] === name) count++;
    return count;
  }

  /** Its value if exactly one line has this name. */
  sole(name: string): string | undefined {
    return this.count(name) === 1 ? this.get(name) : undefined;
  }
}
