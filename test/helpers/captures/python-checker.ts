import { spawnSync } from "node:child_process";
import type { Test } from "tap";

/** Debian's modules belong to its own Python, which need not be the first on the path. */
const INTERPRETERS = ["/usr/bin/python3", "python3"];

/** An interpreter that has these modules; undefined where there is none. */
export function pythonWith(...modules: string[]): string | undefined {
  return INTERPRETERS.find((python) => {
    const found = spawnSync(python, ["-c", `import ${modules.join(", ")}`], { timeout: 120_000 });
    return found.error === undefined && found.status === 0;
  });
}

/** For `skip` of a test. */
export function skipWithout(checker: string | undefined, name: string): false | string {
  return checker === undefined ? `${name} is not there: not compared with it` : false;
}

/** Runs a script; its standard output as text. */
export function runPython(python: string, script: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(python, ["-c", script, ...args], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    timeout: 240_000,
    env: { ...process.env, OMP_NUM_THREADS: "1" },
  });
  if (error !== undefined || status !== 0) throw error ?? new Error(`${python}: ${stderr}`);
  return stdout;
}

const PIL_DIFFERS = `
import sys, numpy
from PIL import Image
for name in sys.argv[1:]:
    samples = numpy.array(Image.open(name)).astype("<u2")
    expected = numpy.fromfile(name + ".raw", dtype="<u2").reshape(samples.shape)
    print(name, bool(numpy.array_equal(samples, expected)))
`;

/** PIL reads the samples of each picture as they stand in `<name>.raw`. */
export function sameToPil(t: Test, python: string, files: readonly string[]): void {
  const answers = runPython(python, PIL_DIFFERS, ...files)
    .trim()
    .split("\n");
  t.equal(answers.length, files.length);
  t.same(
    answers.filter((answer) => !answer.endsWith("True")),
    [],
  );
}
