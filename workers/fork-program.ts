import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { basename, dirname, resolve } from "node:path";

/**
 * Starts a program of ours in a process of its own, by the Node that runs this one, also where that was started by the loader of a C library
 * beside the system's (`ld-linux-x86-64.so.2 --library-path … node …`): then the loader is what Node takes for its own path.
 */
export function forkProgram(program: string, args: readonly string[], options: ForkOptions): ChildProcess {
  const execArgv = options.execArgv ?? process.execArgv;
  return fork(program, args, { ...options, execArgv: [...loaderArguments(), ...execArgv] });
}

/** What the loader needs before Node's own options; empty where there is none. */
function loaderArguments(): readonly string[] {
  if (!/^ld(?:-|\.so)/.test(basename(process.execPath))) return [];
  const { sharedObjects } = process.report.getReport() as { sharedObjects: string[] };
  const libraries = sharedObjects.filter((path) => path.includes("/"));
  // The C library's folder comes first: the system's folder holds an older one.
  const first = libraries.filter((path) => basename(path) === "libc.so.6");
  const folders = new Set([...first, ...libraries].map((path) => resolve(dirname(path))));
  return ["--library-path", [...folders].join(":"), process.argv0];
}
