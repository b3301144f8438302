// A coding with its weight; 0 means "not acceptable" (RFC 9110, section 12.5.3).
const CODINGS = {
  gzip: /(?:^|,)[ \t]*(?:x-)?gzip[ \t]*(?:;[ \t]*q=(\d(?:\.\d{0,3})?)[ \t]*)?(?=,|$)/i,
  br: /(?:^|,)[ \t]*br[ \t]*(?:;[ \t]*q=(\d(?:\.\d{0,3})?)[ \t]*)?(?=,|$)/i,
};

/** Whether the client takes this coding. @param acceptEncoding the header Accept-Encoding */
export function accepts(acceptEncoding: string | undefined, coding: keyof typeof CODINGS): boolean {
  if (acceptEncoding === undefined) return false;
  const match = CODINGS[coding].exec(acceptEncoding);
  return match !== null && Number(match[1] ?? 1) > 0;
}

/** Whether the client names text/html among what it takes: a wildcard does not tell that it is a browser. @param accept the header Accept */
export function acceptsHtml(accept: string | undefined): boolean {
  const match = /(?:^|,)[ \t]*text\/html[ \t]*(;[^,]*)?(?=,|$)/i.exec(accept ?? "");
  return match !== null && !/;[ \t]*q=0(?:\.0{0,3})?[ \t]*(?:;|$)/i.test(match[1] ?? "");
}
