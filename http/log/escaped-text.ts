/** Characters that a terminal acts on: control characters, other line ends, and changes of the text's direction. */
const OBEYED = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const OBEYED_IN_LINES = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/**
 * The text as one line that is safe for a terminal: control characters from producers, clients and file names are shown as escapes. JSON text
 * without line ends stays valid JSON with the same value.
 */
export function escaped(text: string): string {
  return text.replace(OBEYED, codeOf);
}

/** The same for text of several lines. */
export function escapedLines(text: string): string {
  return text.replace(OBEYED_IN_LINES, codeOf);
}

function codeOf(character: string): string {
  return `\\u${(character.codePointAt(0) as number).toString(16).padStart(4, "0")}`;
}
