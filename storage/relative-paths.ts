/** The text with every path in the data directory relative to it: for people elsewhere, to whom the machine's folders say nothing. */
export function withRelativePaths(text: string, dataDirectory: string): string {
  return text.replaceAll(`${dataDirectory}/`, "");
}
