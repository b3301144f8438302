/** One event, with the last id that was given. */
export interface ParsedEvent {
  readonly id: string;
  /** `message` if the stream names none. */
  readonly name: string;
  readonly data: string;
}

/** Reads Server-Sent Events, as the HTML standard defines their format (section 9.2.6). */
export class EventParser {
  /** As the stream has asked for, in milliseconds. */
  retryMs: number | undefined;
  #rest = "";
  #endsWithReturn = false;
  #id = "";
  #name = "";
  #data: string[] = [];

  /** The events that the next piece of text completes. */
  push(text: string): ParsedEvent[] {
    const events: ParsedEvent[] = [];
    // A line may end with CR LF, and the two may come apart.
    const piece = this.#endsWithReturn && text.startsWith("\n") ? text.slice(1) : text;
    if (text !== "") this.#endsWithReturn = text.endsWith("\r");
    const lines = (this.#rest + piece).split(/\r\n|\r|\n/);
    this.#rest = lines.pop() as string;
    for (const line of lines) {
      if (line !== "") this.#takeField(line);
      else if (this.#data.length > 0) {
        events.push({ id: this.#id, name: this.#name || "message", data: this.#data.join("\n") });
      }
      if (line === "") {
        this.#name = "";
        this.#data = [];
      }
    }
    return events;
  }

  #takeField(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#name = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
