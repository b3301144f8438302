/**
 * What the browser keeps for this site. If it blocks site data, even a look at `localStorage` throws: then nothing is kept, and the page
 * works all the same.
 */
type Place = "localStorage" | "sessionStorage";

function tried<Result>(use: () => Result): Result | undefined {
  try {
    return use();
  } catch {
    return undefined;
  }
}

export function keptText(place: Place, name: string): string | undefined {
  return tried(() => window[place].getItem(name)) ?? undefined;
}

export function keepText(place: Place, name: string, text: string): void {
  tried(() => window[place].setItem(name, text));
}

export function dropText(place: Place, name: string): void {
  tried(() => window[place].removeItem(name));
}
