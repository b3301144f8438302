/** The header lines of one request; names in lower case. */
export class RequestHeaders {
  readonly #values = new Map<string, string[]>();

  add(name: string, value: string): void {
    const values = this.#values.get(name);
    if (values === undefined) this.#values.set(name, [value]);
    else values.push(value);
  }

  /** Undefined if absent, an empty text if empty; several lines are joined by a comma (RFC 9110, section 5.3). */
  get(name: string): string | undefined {
    return this.#values.get(name)?.join(", ");
  }

  /** How many lines have this name. */
  count(name: string): number {
    return this.#values.get(name)?.length ?? 0;
  }

  /** The value if exactly one line has this name, else undefined. */
  sole(name: string): string | undefined {
    return this.count(name) === 1 ? this.get(name) : undefined;
  }
}
