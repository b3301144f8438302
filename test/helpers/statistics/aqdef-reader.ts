/**
 * A reader of the Q-DAS ASCII transfer format, written from its public description: lines of a key, an optional number after a slash,
 * and a content. K0100 says how many characteristics there are; K1xxx describe the part; K2xxx/n characteristic n; K0001/n begins a
 * record of it, and further K00xx/n belong to the last record of that characteristic.
 */
export interface AqdefFile {
  part: Record<string, string>;
  characteristics: { fields: Record<string, string>; records: Record<string, string>[] }[];
}

export function readAqdef(text: string): AqdefFile {
  const lines = text.split("\r\n");
  if (lines.pop() !== "") throw new Error("the last line has no end");
  const file: AqdefFile = { part: {}, characteristics: [] };
  for (const [at, line] of lines.entries()) {
    const match = /^(K\d{4})(?:\/(\d+))? (.*)$/.exec(line);
    if (match === null) throw new Error(`line ${at + 1} is no K field: ${line}`);
    const [, key, index, content] = match as unknown as [string, string, string | undefined, string];
    if (at === 0) {
      if (key !== "K0100") throw new Error("the file does not begin with K0100");
      file.characteristics = Array.from({ length: Number(content) }, () => ({ fields: {}, records: [] }));
    } else if (key.startsWith("K1")) {
      file.part[key] = content;
    } else {
      const characteristic = file.characteristics[Number(index) - 1];
      if (characteristic === undefined) throw new Error(`line ${at + 1}: there is no characteristic ${index}`);
      if (key.startsWith("K2")) {
        if (characteristic.records.length > 0) throw new Error(`line ${at + 1}: a description after values`);
        characteristic.fields[key] = content;
      } else {
        if (key === "K0001") characteristic.records.push({});
        const record = characteristic.records.at(-1);
        if (record === undefined || key in record) throw new Error(`line ${at + 1}: ${key} of no value`);
        record[key] = content;
      }
    }
  }
  return file;
}
