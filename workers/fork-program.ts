import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { basename, dirname, resolve } from "node:path";

/**
 * Starts one of our programs in a process of its own, with the Node that runs this one. This also works if Node was started by the loader
 * of another C library (`ld-linux-x86-64.so.2 --library-path … node …`), where `process.execPath` is the loader.
 */
export function forkProgram(program: string, args: readonly string[], options: ForkOptions): ChildProcess {
  const execArgv = options.execArgv ?? process.execArgv;
  return fork(program, args, { ...options, execArgv: [...loaderArguments(), ...execArgv] });
}

/** The loader's arguments, which come before Node's own options; empty without a loader. */
function loaderArguments(): readonly string[] {
  if (!/^ld(?:-|\.so)/.test(basename(process.execPath))) return [];
  const { sharedObjects } = process.report.getReport() as { sharedObjects: string[] };
  const libraries = sharedObjects.filter((path) => path.includes("/"));
  // The C library's folder comes first, because the system's folder may hold an older one.
  const first = libraries.filter((path) => basename(path) === "libc.so.6");
  const folders = new Set([...first, ...libraries].map((path) => resolve(dirname(path))));
  return ["--library-path", [...folders].join(":"), process.argv0];
}
