/** Time in seconds from the first sample, then the values of each channel; null where none was measured. */
export interface Series {
  channels: string[];
  columns: [number[], ...(number | null)[][]];
}

/** @param csv as the service writes it: a time, then a value of each channel, empty where none was measured */
export function parseSeries(csv: string): Series {
  const [head = "", ...lines] = csv.trimEnd().split(/\r?\n/);
  const [, ...channels] = head.split(",");
  const times: number[] = [];
  const values: (number | null)[][] = channels.map(() => []);
  for (const line of lines) {
    const [time = "", ...cells] = line.split(",");
    times.push(Date.parse(time) / 1000);
    channels.forEach((_, at) => {
      const cell = cells[at];
      (values[at] as (number | null)[]).push(cell === undefined || cell === "" ? null : Number(cell));
    });
  }
  const begin = times[0] ?? 0;
  return { channels, columns: [times.map((time) => time - begin), ...values] };
}
