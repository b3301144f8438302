import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { TextBytes } from "../../../../workers/artefacts/findings/text-bytes.js";

function written(write: (out: TextBytes) => void): string {
  const out = new TextBytes(1);
  write(out);
  return Buffer.from(out.bytes()).toString();
}

t.test("numbers are written as JavaScript writes them", async (t) => {
  const seed = 36;
  const random = createRandom(seed);
  const numbers = [0, -0, 1, -1, 10, 100, 0.1, 1e-4, -1e-4, 1e-5, 1.5e-4, 0.1 + 0.2, 99_999.9999, 1e9, 1e21, 1e-7];
  numbers.push(
    107_374.1823,
    107_374.1824,
    107_374.1825,
    5e-324,
    1.7e308,
    Number.MAX_SAFE_INTEGER,
    2 ** 30,
    2 ** 30 / 1e4,
  );
  for (let nth = 0; nth < 20_000; nth++) {
    numbers.push((random.next() - 0.5) * 10 ** random.integer(-8, 12));
    numbers.push(random.integer(-1e8, 1e8) / 10 ** random.integer(0, 8));
  }
  const wrong = numbers.filter((number) => written((out) => out.addNumber(number)) !== String(number));
  t.same(wrong, [], `seed ${seed}`);
});

t.test("text grows, with any characters", async (t) => {
  const pieces = ["", "a", "é\u{1f600}", "x".repeat(5_000), "\ud800", "\ufeffend"];
  const expected = Buffer.from(pieces.join("|")).toString();
  t.equal(
    written((out) => {
      for (const [at, piece] of pieces.entries()) {
        if (at > 0) out.addAscii("|");
        if (at % 2 === 0) out.addText(piece);
        else out.add(Buffer.from(piece));
      }
    }),
    expected,
  );
});
