/**
 * Inputs for fuzzing, kept as golden files in test/fuzz/corpus/<target>/: `<name>.hex` has the input, `<name>.json` beside it how the
 * product judges it. An input is one or more named parts (the files of a log, the sections of a record): a line `; …` says how it came
 * about, a line `== name` begins a part, the others are its bytes in hex, 32 a line.
 *
 * What the product's own encoders write is made anew and compared with its files at each run, so that neither can change unnoticed. All
 * other inputs were made once (each kind of damage and of wrong content) or found by fuzzing: they stay as they are, and only their
 * judgement is compared. `CORPUS=write node .ci/test.mjs fuzz` writes the made inputs and all judgements: read the diff before it is
 * committed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Test } from "tap";

export interface CorpusEntry {
  name: string;
  /** One line: what it is. */
  about: string;
  parts: Map<string, Uint8Array>;
}

const FOLDER = "test/fuzz/corpus";
const LINE_BYTES = 32;
const writes = process.env.CORPUS === "write";

export function corpusEntry(name: string, about: string, parts: Record<string, Uint8Array>): CorpusEntry {
  return { name, about, parts: new Map(Object.entries(parts)) };
}

/**
 * Compares the generated entries with their files, and every file's judgement with the one beside it. Gives all entries of the folder,
 * for mutations to begin from.
 */
export async function checkCorpus(
  t: Test,
  target: string,
  generated: readonly CorpusEntry[],
  judge: (entry: CorpusEntry) => unknown,
): Promise<CorpusEntry[]> {
  const folder = join(FOLDER, target);
  mkdirSync(folder, { recursive: true });
  const names = new Set(readdirSync(folder).flatMap((name) => /^(.+)\.hex$/.exec(name)?.[1] ?? []));
  for (const entry of generated) {
    const path = join(folder, `${entry.name}.hex`);
    const text = textOf(entry);
    if (writes) writeFileSync(path, text);
    else t.equal(existsSync(path) ? readFileSync(path, "utf8") : "", text, `${path} is what its generator makes`);
    names.add(entry.name);
  }
  const entries: CorpusEntry[] = [];
  for (const name of [...names].sort()) {
    const entry = entryOf(name, readFileSync(join(folder, `${name}.hex`), "utf8"));
    const path = join(folder, `${name}.json`);
    const judgement = `${JSON.stringify(await judge(entry), null, 1)}\n`;
    if (writes) writeFileSync(path, judgement);
    else t.equal(existsSync(path) ? readFileSync(path, "utf8") : "", judgement, `${path}: ${entry.about}`);
    entries.push(entry);
  }
  for (const name of readdirSync(folder)) {
    t.ok(/\.(hex|json)$/.test(name) && names.has(name.replace(/\.\w+$/, "")), `${name} belongs to an entry`);
  }
  t.comment(`${target}: ${entries.length} entries, ${generated.length} of them generated`);
  return entries;
}

/** The text of an entry's file; also what a failing mutant is printed as, to be added to the corpus. */
export function textOf({ about, parts }: Omit<CorpusEntry, "name">): string {
  const lines = [`; ${about}`];
  for (const [name, bytes] of parts) {
    lines.push(`== ${name}`);
    for (let at = 0; at < bytes.length; at += LINE_BYTES) {
      lines.push(Buffer.from(bytes.subarray(at, at + LINE_BYTES)).toString("hex"));
    }
  }
  return `${lines.join("\n")}\n`;
}

function entryOf(name: string, text: string): CorpusEntry {
  const entry: CorpusEntry = { name, about: "", parts: new Map() };
  for (const [head, ...lines] of text.split(/^== /m).map((part) => part.split("\n"))) {
    if (head?.startsWith("; ")) entry.about = head.slice(2);
    else entry.parts.set(head ?? "", new Uint8Array(Buffer.from(lines.join(""), "hex")));
  }
  return entry;
}
