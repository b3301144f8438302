/**
 * A lock that nobody can take away by a name: a listening socket in Linux's abstract namespace, called after the folder's device and
 * inode. The kernel frees it with its process, as it does the sockets of directory-lock.ts, and no `rm` reaches it. It is seen within one
 * network namespace only, which is why it stands beside those sockets and not in their place.
 *
 * Any account of the machine may use such a name: one that wants to keep the service from starting can. It learns nothing by it. Where
 * the machine's rules give this account no such names, they give them to no process of it, and the files stand alone.
 */
import { connect, createServer } from "node:net";

const FORBIDDEN_CODES: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM"]);
/** A holder that does not say so within this is stopped or busy, but alive. */
const ANSWER_TIMEOUT_MS = 1_000;
const PREFIX = "\0inspection-results-service/";

export interface NameLock {
  /** Who asks from now on is told that the folder is held, and not merely asked for. */
  hold(): void;
  release(): Promise<void>;
}

/** Who has the name. `isHolding`: false for one that asks itself, and may not get the folder. */
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
    // Whoever keeps the connection open, which any account can, must keep neither a descriptor of this process nor its end.
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
    // Of a process that has ended, or is about to let go: whoever asks again sees.
    socket.on("error", () => resolve({ processId: null, isHolding: false }));
    socket.on("close", () => {
      const [, state, processId] = /^(holding|asking) (\d+)$/.exec(answer) ?? [];
      resolve({ processId: processId === undefined ? null : Number(processId), isHolding: state === "holding" });
    });
  });
}
