import { inflateSync } from "node:zlib";

export interface PdfSheet {
  /** In points of 1/72 inch. */
  width: number;
  height: number;
  /** In the order in which it is drawn. Lines follow each other without a space. */
  text: string;
}

interface PdfObject {
  head: string;
  /** Of its stream; empty without one. */
  content: string;
}

/** Reads the sheets of a PDF as Chromium writes it: objects stand alone, and texts are glyphs of two bytes. */
export function pdfSheets(pdf: Buffer): PdfSheet[] {
  const objects = new Map<string, PdfObject>();
  for (const [, number = "", body = ""] of pdf.toString("latin1").matchAll(/(\d+) 0 obj\s([\s\S]*?)\sendobj/g)) {
    objects.set(number, objectOf(body));
  }
  const object = (number = ""): PdfObject => {
    const found = objects.get(number);
    if (found === undefined) throw new Error(`the PDF has no object ${number}`);
    return found;
  };
  const pages = [...objects.values()].filter(({ head }) => /\/Type \/Page\b/.test(head));
  return pages.map(({ head }) => {
    const fonts = new Map<string, ReadonlyMap<number, string>>();
    for (const [, name = "", number] of head.matchAll(/\/(F\d+) (\d+) 0 R/g)) {
      const unicode = /\/ToUnicode (\d+) 0 R/.exec(object(number).head)?.[1];
      fonts.set(name, unicode === undefined ? new Map() : charactersOf(object(unicode).content));
    }
    const [, width, height] = /\/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]/.exec(head) ?? [];
    const { content } = object(/\/Contents (\d+) 0 R/.exec(head)?.[1]);
    return { width: Number(width), height: Number(height), text: textOf(content, fonts) };
  });
}

function objectOf(body: string): PdfObject {
  const start = /stream\r?\n/.exec(body);
  if (start === null) return { head: body, content: "" };
  const head = body.slice(0, start.index);
  if (!head.includes("/FlateDecode") || head.includes("/Image") || head.includes("/Length1"))
    return { head, content: "" };
  return {
    head,
    content: inflateSync(Buffer.from(body.slice(start.index + start[0].length), "latin1")).toString("latin1"),
  };
}

/** The character of each glyph, from a font's CMap. */
function charactersOf(map: string): ReadonlyMap<number, string> {
  const characters = new Map<number, string>();
  const hex = (text = ""): number => Number.parseInt(text, 16);
  for (const [, first, last, to] of map.matchAll(/^<([0-9A-F]{4})> (?:<([0-9A-F]{4})> )?<([0-9A-F]{4})>$/gm)) {
    for (let glyph = hex(first); glyph <= hex(last ?? first); glyph++) {
      characters.set(glyph, String.fromCharCode(hex(to) + glyph - hex(first)));
    }
  }
  return characters;
}

function textOf(content: string, fonts: ReadonlyMap<string, ReadonlyMap<number, string>>): string {
  let text = "";
  let font: ReadonlyMap<number, string> | undefined;
  for (const [, name, glyphs] of content.matchAll(/\/(F\d+) [\d.]+ Tf|<([0-9A-F]+)> Tj/g)) {
    if (name !== undefined) font = fonts.get(name);
    for (const [glyph] of (glyphs ?? "").matchAll(/[0-9A-F]{4}/g)) text += font?.get(Number.parseInt(glyph, 16)) ?? "?";
  }
  return text;
}
