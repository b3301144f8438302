/** Room for this many lines at first: a browser sends some fifteen, other programs half of that. */
const FIRST_LINES = 8;

/** The header lines of one request in the order they came; names in lower case. */
export class RequestHeaders {
  /** Names and values alternately. Preallocated, as growing the array costs as much as everything else here. */
  readonly #lines: string[] = new Array(FIRST_LINES * 2);
  #end = 0;
  /** Bit n is set if a name has length n, modulo 32: most look-ups are for absent names, and end here. */
  #lengths = 0;

  add(name: string, value: string): void {
    this.#lines[this.#end++] = name;
    this.#lines[this.#end++] = value;
    this.#lengths |= 1 << name.length;
  }

  /** Undefined if absent, an empty text if empty; several lines are joined by a comma (RFC 9110, section 5.3). */
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

  /** The value if exactly one line has this name, else undefined. */
  sole(name: string): string | undefined {
    return this.count(name) === 1 ? this.get(name) : undefined;
  }
}
