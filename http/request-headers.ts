/** The header lines of one request in the order they came; names in lower case. */
export class RequestHeaders {
  readonly #lines: string[] = [];

  add(name: string, value: string): void {
    this.#lines.push(name, value);
  }

  /** Undefined when absent, which is not the same as empty; several lines joined by a comma (RFC 9110, section 5.3). */
  get(name: string): string | undefined {
    const lines = this.#lines;
    let found: string | undefined;
    for (let i = 0; i < lines.length; i += 2) {
      if (lines[i] === name) found = found === undefined ? (lines[i + 1] as string) : `${found}, ${lines[i + 1]}`;
    }
    return found;
  }

  /** How many lines have this name. */
  count(name: string): number {
    const lines = this.#lines;
    let count = 0;
    for (let i = 0; i < lines.length; i += 2) if (lines[i] === name) count++;
    return count;
  }
}
