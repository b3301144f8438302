/**
 * The Q-DAS ASCII transfer format, AQDEF, of measured values. Each line is a key, a blank and its content; lines end with CR LF; the
 * text is UTF-8. First the part and its characteristics are described, one for each name of a check, then come the values.
 *
 * | key | meaning in the format, and its length | content here |
 * |---|---|---|
 * | K0100 | total number of characteristics in the file, 5 digits | count of names |
 * | K1001/1 | part number, 30 characters | the first 30 characters of the program's id |
 * | K1002/1 | part description, 80 | name of the program |
 * | K1900/1 | remark on the part, 255 | id of the program |
 * | K2001/n | characteristic number, 40 | n |
 * | K2002/n | characteristic description, 80 | the check's name |
 * | K2101/n | nominal value | |
 * | K2110/n, K2111/n | lower and upper specification limit | absent without one |
 * | K2142/n | unit | mm, or absent |
 * | K0001/n | measured value | a value of characteristic n; a second one begins its next record |
 * | K0002/n | attribute | 0 valid; 129 invalid, for a check that was not evaluated or broke off |
 * | K0004/n | date and time | when its run ended, in UTC: `31.01.2026/12:00:16` |
 * | K0014/n | part identification, 40 | the part's serial number; absent without one |
 *
 * A value with attribute 129 is shown and is not computed with. 255 would mean that there is no value. Nominal value and limits are those
 * of the newest check that has them. A threshold without a nominal value is a lower limit. Longer names and serial numbers than the
 * format foresees are written whole: if they were cut, two of them could look the same.
 *
 * Sources:
 * - Q-DAS ASCII Transfer Format, version 12 (Q-DAS, 2015),
 *   https://documentation-be.hexagon.com/bundle/q-das/page/LD/Q-DAS_ASCII-Transfer-Format_V12.pdf
 * - meanings and lengths of the others: PC-DMIS 2022.1, Q-DAS Configurator, "Supported K-Fields",
 *   https://docs.hexagonmi.com/pcdmis/2022.1/en/helpcenter/mergedprojects/qdasconfigurator/Supported_K-Fields.htm
 * - meanings and lengths of K2xxx: Hexagon Nexus, Q-DAS, "Characteristic fields K2xxx and K8xxx",
 *   https://qa.nexus.hexagon.com/community/public/q-das/w/data-format/12386/characteristic-fields-k2xxx-and-k8xxx
 * - contents of K0002 and K0004: there, "Defined contents K00xx",
 *   https://qa.nexus.hexagon.com/community/public/q-das/w/data-format/12488/defined-contents-k00xx
 */
import { CANONICAL_UNITS, type CHECK_STATUSES } from "../../../core/run/quality.js";
import { finite, limitsOf } from "../../../core/statistics/capability.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import type { RowFormat } from "./check-rows.js";
import type { CheckSummary } from "./program-summary.js";

const LINE_END = "\r\n";
/** The part number has as many characters. */
const PART_NUMBER_CHARACTERS = 30;
const VALID = 0;
const INVALID = 129;
const MILLIMETRES = CANONICAL_UNITS.indexOf("mm");
const IS_VALID: Readonly<Record<(typeof CHECK_STATUSES)[number], boolean>> = {
  passed: true,
  failed: true,
  warning: true,
  not_evaluated: false,
  error: false,
};

/** The description, before the values. @param checks in the order of their numbers */
export function aqdefHead(program: { id: string; name: string }, checks: readonly CheckSummary[]): string {
  const lines = [
    `K0100 ${checks.length}`,
    `K1001/1 ${program.id.slice(0, PART_NUMBER_CHARACTERS)}`,
    `K1002/1 ${oneLine(program.name)}`,
    `K1900/1 ${program.id}`,
  ];
  for (const [at, { name, nominal, threshold, units }] of checks.entries()) {
    const number = at + 1;
    const { lower, upper } = limitsOf(finite(nominal), finite(threshold));
    lines.push(`K2001/${number} ${number}`, `K2002/${number} ${oneLine(name)}`);
    if (!Number.isNaN(nominal)) lines.push(`K2101/${number} ${nominal}`);
    if (lower !== null) lines.push(`K2110/${number} ${lower}`);
    if (upper !== null) lines.push(`K2111/${number} ${upper}`);
    if (units === MILLIMETRES) lines.push(`K2142/${number} mm`);
  }
  return lines.map((line) => line + LINE_END).join("");
}

/** @param names of the characteristics, in the order of their numbers */
export function aqdefRows(names: readonly string[]): RowFormat {
  const numbers = new Map(names.map((name, at) => [name, at + 1]));
  return {
    showsWithoutValue: false,
    run: ({ serialNumber, completedAtUs }) => [
      aqdefTime(completedAtUs),
      ...(serialNumber === null ? [] : [oneLine(serialNumber)]),
    ],
    setting: ({ name }) => {
      const number = numbers.get(name);
      const attribute = (code: number) => `${LINE_END}K0002/${number} ${code}${LINE_END}K0004/${number} `;
      return [`K0001/${number} `, attribute(VALID), attribute(INVALID), `${LINE_END}K0014/${number} `];
    },
    row(out, [time, serialNumber], setting, { status, value }) {
      out.add(setting[0]!);
      out.addNumber(value);
      out.add(setting[IS_VALID[status] ? 1 : 2]!);
      out.add(time!);
      if (serialNumber !== undefined) {
        out.add(setting[3]!);
        out.add(serialNumber);
      }
      out.addAscii(LINE_END);
    },
  };
}

/** `31.01.2026/12:00:16` */
function aqdefTime(timeUs: number): string {
  const text = formatTimeUs(timeUs);
  return `${text.slice(8, 10)}.${text.slice(5, 7)}.${text.slice(0, 4)}/${text.slice(11, 19)}`;
}

/** A content ends with its line, so control characters, line ends among them, become blanks. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, " ");
}
