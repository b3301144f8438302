/**
 * A lock that no `rm` can remove: a listening socket in Linux's abstract namespace, named after the folder's device and inode. The kernel frees it
 * when its process ends, like the sockets of directory-lock.ts. It is visible only within one network namespace, so it is used beside those sockets
 * and not instead of them.
 *
 * Any account of the machine may take such a name, and so keep the service from starting; it learns nothing by that. If the machine's rules deny
 * this account such names, they deny them to all its processes, and the entries in the folder are the only lock.
 */
import { connect, createServer } from "node:net";

const FORBIDDEN_CODES: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM"]);
/** A process that does not answer within this time is stopped or busy, but alive. */
const ANSWER_TIMEOUT_MS = 1_000;
const PREFIX = "\0inspection-results-service/";

export interface NameLock {
  /** From now on, tells others that this process holds the folder and no longer only asks for it. */
  hold(): void;
  release(): Promise<void>;
}

/** The process that has the name. `isHolding` is false for one that still asks, and may not get the folder. */
export interface NameHolder {
  processId: number | null;
  isHolding: boolean;
}

const NO_NAME: NameLock = { hold: () => {}, release: async () => {} };

/** @param identity of the folder: see `FileStatus` */
export async function takeName(identity: string): Promise<NameLock | NameHolder> {
  if (process.platform !== "linux") return NO_NAME;
  let isHolding = false;
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    // Any account can keep the connection open. That must neither hold a descriptor of this process nor keep it from ending.
    socket.end(`${isHolding ? "holding" : "asking"} ${process.pid}`, () => socket.destroy());
  });
  const failure = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    server.once("error", resolve);
    server.listen(PREFIX + identity, () => resolve(null));
  });
  if (failure?.code === "EADDRINUSE") return await holderOf(PREFIX + identity);
  if (FORBIDDEN_CODES.has(failure?.code)) return NO_NAME;
  if (failure !== null) throw failure;
  // A connection that could not be accepted: whoever asks sees it closed, and asks again.
  server.on("error", () => {});
  server.unref();
  return {
    hold: () => {
      isHolding = true;
    },
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function holderOf(name: string): Promise<NameHolder> {
  return new Promise((resolve) => {
    const socket = connect(name);
    let answer = "";
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => {
      socket.destroy();
      resolve({ processId: null, isHolding: true });
    });
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      answer += text;
    });
    // The process has ended, or is about to release the name. The next try will see.
    socket.on("error", () => resolve({ processId: null, isHolding: false }));
    socket.on("close", () => {
      const [, state, processId] = /^(holding|asking) (\d+)$/.exec(answer) ?? [];
      resolve({ processId: processId === undefined ? null : Number(processId), isHolding: state === "holding" });
    });
  });
}
