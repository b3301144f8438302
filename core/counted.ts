/** A number with its noun, for people: `1 place`, `2 places`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
