/** Time in seconds from the first sample, then the values of each channel; null where none was measured. */
export interface Series {
  channels: string[];
  columns: [number[], ...(number | null)[][]];
}

/** @param csv as the service writes it: a time with six digits after the second, then a value of each channel, empty where none was measured */
export function parseSeries(csv: string): Series {
  const [head = "", ...lines] = csv.trimEnd().split(/\r?\n/);
  const [, ...channels] = head.split(",");
  const timesUs: number[] = [];
  const values: (number | null)[][] = channels.map(() => []);
  for (const line of lines) {
    const [time = "", ...cells] = line.split(",");
    timesUs.push(timeUs(time));
    channels.forEach((_, at) => {
      const cell = cells[at];
      (values[at] as (number | null)[]).push(cell === undefined || cell === "" ? null : Number(cell));
    });
  }
  const begin = timesUs[0] ?? 0;
  return { channels, columns: [timesUs.map((time) => (time - begin) / 1e6), ...values] };
}

/** Microseconds since 1970: a number holds them exactly. `Date.parse` alone drops what is finer than a millisecond. */
function timeUs(text: string): number {
  return Date.parse(`${text.slice(0, 19)}Z`) * 1000 + Number(text.slice(20, 26));
}
