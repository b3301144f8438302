/** What a terminal obeys: control characters, other line ends, and what turns the direction of text. */
const OBEYED = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const OBEYED_IN_LINES = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/**
 * The text as one line for a terminal: what producers, clients and file names bring is shown, and never obeyed. JSON text without line ends
 * stays the same JSON.
 */
export function escaped(text: string): string {
  return text.replace(OBEYED, codeOf);
}

/** As `escaped`, of several lines. */
export function escapedLines(text: string): string {
  return text.replace(OBEYED_IN_LINES, codeOf);
}

function codeOf(character: string): string {
  return `\\u${(character.codePointAt(0) as number).toString(16).padStart(4, "0")}`;
}
