/** What stands in a Markdown document for its readers to type, found as plain text. */

/** A fenced block. `name` is the file that the reader saves it as: "```js receiver.mjs". */
export interface Fence {
  readonly language: string;
  readonly name: string;
  readonly text: string;
}

/** A line for a shell. A comment at its end may name the status that the request gets: `# 404`. */
export interface Command {
  readonly text: string;
  readonly status: number | null;
}

const FENCE = /^( *)```(\S*) *(\S*)\n([\s\S]*?)^\1```$/gm;

export function fencesOf(markdown: string): Fence[] {
  return [...markdown.matchAll(FENCE)].map(([, indent = "", language = "", name = "", text = ""]) => ({
    language,
    name,
    text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}

/** The commands in blocks of shell, and the requests in the cells of tables, in the order of the document. */
export function commandsOf(markdown: string): Command[] {
  const places = [
    ...[...markdown.matchAll(FENCE)].filter(([, , language]) => language === "sh"),
    ...markdown.matchAll(/^\|.*`curl .*$/gm),
  ].sort((a, b) => a.index - b.index);
  return places.flatMap(([text]) =>
    text.startsWith("|")
      ? [...text.matchAll(/`(curl [^`]*)`/g)].map(([, request]) => commandOf(request as string))
      : fencesOf(text).flatMap((fence) => linesOf(fence.text).map(commandOf)),
  );
}

/** Lines as a shell reads them: one that ends within quotes, or with a backslash, goes on in the next. */
function linesOf(text: string): string[] {
  const lines: string[] = [];
  let open = "";
  for (const line of text.trimEnd().split("\n")) {
    open = open === "" ? line : `${open}\n${line}`;
    if (open.split("'").length % 2 === 0 || line.endsWith("\\")) continue;
    if (open.trim() !== "") lines.push(open);
    open = "";
  }
  if (open !== "") throw new Error(`a line goes on behind the end of: ${open}`);
  return lines;
}

function commandOf(line: string): Command {
  const [, text = "", comment = ""] = /^([\s\S]*?)(?:\s+#\s(.*))?$/.exec(line) ?? [];
  const status = /^(\d{3})\b/.exec(comment)?.[1];
  return { text: text.trim(), status: status === undefined ? null : Number(status) };
}

/** Words in backticks, outside of fenced blocks. */
export function inlineCodeOf(markdown: string): string[] {
  return [...markdown.replaceAll(FENCE, "").matchAll(/`([^`\n]+)`/g)].map(([, code]) => code as string);
}
