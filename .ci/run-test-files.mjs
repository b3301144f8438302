// Runs test files, each by Node as it is, a few at a time, and gives what they wrote as one TAP document. Not by tap's own command: that
// preloads its hooks for coverage and mocks into every test, every thread and every service that a test starts, which doubles what these
// take to come up, and nothing here uses them.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { availableParallelism, constants } from "node:os";

/** Beyond its limit a file has this time to report that it is too slow. Then all that it started is ended. */
const GRACE_MS = 15_000;

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * @param {readonly string[]} files
 * @param {{ jobs?: number, timeoutSeconds: number, graceMs?: number, onEnd?: (file: string, ok: boolean, seconds: number) => void }} options
 * @returns {Promise<{ ok: boolean, failedFiles: number, tap: string }>} the files' documents, each indented below its name, in the order of the files
 */
export async function runTestFiles(
  files,
  { jobs = availableParallelism(), timeoutSeconds, graceMs = GRACE_MS, onEnd },
) {
  if (!(Number.isInteger(jobs) && jobs >= 1)) throw new RangeError(`${jobs} files at a time: allowed are 1 and more`);
  const results = new Array(files.length);
  const running = new Set();
  const endAll = () => {
    for (const child of running) endGroup(child);
  };
  const onSignal = (signal) => {
    endAll();
    process.exit(128 + constants.signals[signal]);
  };
  process.on("exit", endAll);
  for (const signal of SIGNALS) process.on(signal, onSignal);
  let next = 0;
  const runNext = async (job) => {
    while (next < files.length) {
      const at = next++;
      results[at] = await runFile(files[at], job, timeoutSeconds, graceMs, running);
      onEnd?.(files[at], results[at].ok, results[at].seconds);
    }
  };
  await Promise.all(Array.from({ length: Math.min(jobs, files.length) }, (_, job) => runNext(job)));
  process.off("exit", endAll);
  for (const signal of SIGNALS) process.off(signal, onSignal);
  const blocks = results.map(({ ok, text, seconds }, at) => {
    const result = `${ok ? "ok" : "not ok"} ${at + 1} - ${files[at]} # time=${seconds.toFixed(3)}s`;
    return `# Subtest: ${files[at]}\n${text.replace(/^(?=.)/gm, "    ")}\n${result}\n`;
  });
  const tap = `TAP version 14\n1..${files.length}\n${blocks.join("")}`;
  return { ok: results.every(({ ok }) => ok), failedFiles: results.filter(({ ok }) => !ok).length, tap };
}

/** Ends the child and what it has started: it leads a group of its own. */
function endGroup(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

function runFile(file, job, timeoutSeconds, graceMs, running) {
  const startMs = performance.now();
  const child = spawn(process.execPath, [file], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    env: { ...process.env, TAP: "1", TAP_TIMEOUT: String(timeoutSeconds), TAP_JOB_ID: String(job) },
  });
  running.add(child);
  const chunks = [];
  child.stdout.on("data", (chunk) => chunks.push(chunk));
  child.stderr.on("data", (chunk) => process.stderr.write(inSources(String(chunk))));
  let isTooSlow = false;
  const limit = setTimeout(
    () => {
      isTooSlow = true;
      endGroup(child);
      // A process that left the group may keep the pipes open, and they would never end.
      child.stdout.destroy();
      child.stderr.destroy();
    },
    timeoutSeconds * 1000 + graceMs,
  );
  return new Promise((resolve) => {
    child.once("error", (error) => chunks.push(Buffer.from(`not ok - ${error.message}\n`)));
    // A process that it started and forgot could hold its output open.
    child.once("exit", () => endGroup(child));
    child.once("close", (code, signal) => {
      clearTimeout(limit);
      running.delete(child);
      let text = Buffer.concat(chunks).toString();
      const hasPlan = /^1\.\.\d+/m.test(text);
      const ok = code === 0 && hasPlan;
      if (!ok && !/^not ok/m.test(text)) {
        const why = isTooSlow ? `no end within ${timeoutSeconds} s` : `it ended with ${signal ?? code}`;
        text += `not ok - ${why}${hasPlan ? "" : ", without a plan"}\n`;
      }
      if (!ok) text = inSources(text);
      resolve({ ok, text, seconds: (performance.now() - startMs) / 1000 });
    });
  });
}

/**
 * The text with each place in a compiled file replaced by the place in its source. Not by Node's own option: every file and all that it
 * starts would read the map of each module, though hardly any fails.
 */
function inSources(text) {
  return text.replace(/(?:file:\/\/)?[^\s()"']*\.js:\d+:\d+/g, (place) => {
    const [, path, line, column] = /^(?:file:\/\/)?(.*):(\d+):(\d+)$/.exec(place);
    if (path.includes("/node_modules/") || !existsSync(`${path}.map`)) return place;
    const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, "utf8")));
    const { originalSource, originalLine, originalColumn } = map.findEntry(Number(line) - 1, Number(column) - 1);
    if (originalSource === undefined) return place;
    return `${originalSource.replace(/^(\.\.\/)+/, "")}:${originalLine + 1}:${originalColumn + 1}`;
  });
}
