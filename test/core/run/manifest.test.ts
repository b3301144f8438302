import t from "tap";
import { FRAME_FORMATS, fileNameFault, frameFileName } from "../../../core/run/manifest.js";

const ID = "0197a3b2-0000-7abc-8def-000000000001";

t.test("names that a producer may give", async (t) => {
  for (const name of [
    "a",
    "report.pdf",
    "Prüfbericht 3.pdf",
    "日本.csv",
    "...",
    ".hidden",
    "a%2Fb",
    "x".repeat(255),
    "😀".repeat(255),
    `frame-${ID}`,
    `frame-${ID}.pdf`,
    "step-1-cl_sweep.csv.txt",
    "a\u00a0b",
  ]) {
    t.equal(fileNameFault(name), undefined, JSON.stringify(name.slice(0, 40)));
  }
});

t.test("names that it may not", async (t) => {
  const cases: [string, RegExp][] = [
    ["", /1 to 255/],
    ["x".repeat(256), /1 to 255/],
    ["😀".repeat(256), /1 to 255/],
    ["x".repeat(1 << 20), /1 to 255/],
    [".", /not '\.'/],
    ["..", /not '\.'/],
    ["a/b", /control/],
    ["../a", /control/],
    ["a\\b", /control/],
    ["a\u0000b", /control/],
    ["a\nb", /control/],
    ["a\u007fb", /control/],
    ["a\u0085b", /control/],
    ["a\ud800b", /Unicode/],
    ["step-3-cl_sweep.csv", /captures/],
    ["step-0003-cl_sweep.csv", /captures/],
    ...FRAME_FORMATS.map((format): [string, RegExp] => [frameFileName(ID, format), /captures/]),
  ];
  for (const [name, fault] of cases) t.match(fileNameFault(name), fault, JSON.stringify(name.slice(0, 40)));
});
