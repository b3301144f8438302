/** The header lines of one request in the order they came; names in lower case. */
export class RequestHeaders {
  readonly #lines: string[] = [];
  /** Bit n: a name has length n, modulo 32. Most names that are asked for are not there; this says so without looking at the lines. */
  #lengths = 0;

  add(name: string, value: string): void {
    this.#lines.push(name, value);
    this.#lengths |= 1 << name.length;
  }

  /** Undefined when absent, which is not the same as empty; several lines joined by a comma (RFC 9110, section 5.3). */
  get(name: string): string | undefined {
    if ((this.#lengths & (1 << name.length)) === 0) return undefined;
    const lines = this.#lines;
    let found: string | undefined;
    for (let i = 0; i < lines.length; i += 2) {
      if (lines[i] === name) found = found === undefined ? (lines[i + 1] as string) : `${found}, ${lines[i + 1]}`;
    }
    return found;
  }

  /** How many lines have this name. */
  count(name: string): number {
    if ((this.#lengths & (1 << name.length)) === 0) return 0;
    const lines = this.#lines;
    let count = 0;
    for (let i = 0; i < lines.length; i += 2) if (lines[i] === name) count++;
    return count;
  }

  /** Its value if exactly one line has this name. */
  only(name: string): string | undefined {
    return this.count(name) === 1 ? this.get(name) : undefined;
  }
}
