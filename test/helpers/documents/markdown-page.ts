/** Compares parts of a Markdown page with what a test expects. With `TEST_UPDATE=1` it writes them anew instead. */
import { readFileSync, writeFileSync } from "node:fs";
import type { Test } from "tap";

const UPDATES = process.env.TEST_UPDATE === "1";

export class MarkdownPage {
  readonly path: string;
  #text: string;

  constructor(path: string) {
    this.path = path;
    this.#text = readFileSync(path, "utf8");
  }

  get text(): string {
    return this.#text;
  }

  /** From the heading up to the next one of any level. @throws where there is no such heading */
  section(heading: string): string {
    const lines = this.#text.split("\n");
    const at = lines.indexOf(heading);
    if (at < 0) throw new Error(`${this.path} has no heading ${heading}`);
    const length = lines.slice(at + 1).findIndex((line) => /^#+ /.test(line));
    return lines.slice(at, length < 0 ? undefined : at + 1 + length).join("\n");
  }

  /** Headings of one level, without their marks and backquotes. */
  headings(level: number): string[] {
    return [...this.#text.matchAll(new RegExp(`^#{${level}} (.*)$`, "gm"))].map(([, text = ""]) =>
      text.replaceAll("`", ""),
    );
  }

  /** The fenced blocks of a language in the section, without their fences and the indentation of these. */
  blocks(heading: string, language: string): string[] {
    const blocks = this.section(heading).matchAll(new RegExp(`^( *)\`\`\`${language}\n(.*?)^ *\`\`\`$`, "gms"));
    return [...blocks].map(([, indent = "", code = ""]) => code.replaceAll(new RegExp(`^${indent}`, "gm"), ""));
  }

  /** The section has this text, which stands where `pattern` matches. */
  holds(t: Test, heading: string, pattern: RegExp, expected: string): void {
    const section = this.section(heading);
    const found = pattern.exec(section)?.[0];
    if (!UPDATES || found === undefined) {
      t.equal(found, expected, `${heading} (TEST_UPDATE=1 writes it anew)`);
      return;
    }
    const updated = section.replace(pattern, () => expected);
    this.#text = this.#text.replace(section, () => updated);
    writeFileSync(this.path, this.#text);
  }
}

/** The cells of each row of the first table of a section, without its head. */
export function tableRows(section: string): string[][] {
  const table = /^\|[^\n]*\n\|[-| ]+\|\n((?:\|[^\n]*\n?)*)/m.exec(section)?.[1] ?? "";
  const rows = table.split("\n").filter((line) => line !== "");
  return rows.map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}
