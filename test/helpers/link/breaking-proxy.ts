import { connect, createServer, type Server, type Socket } from "node:net";

/** Stands between producers and the service and breaks connections after so many bytes, whichever way they go. */
export class BreakingProxy {
  readonly path: string;
  readonly #target: string;
  readonly #breakAfterBytes: () => number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  connections = 0;
  broken = 0;
  /** Breaks while the service's answers were on their way back. */
  brokenAnswers = 0;

  private constructor(path: string, target: string, breakAfterBytes: () => number) {
    this.path = path;
    this.#target = target;
    this.#breakAfterBytes = breakAfterBytes;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async listen(path: string, target: string, breakAfterBytes: () => number): Promise<BreakingProxy> {
    const proxy = new BreakingProxy(path, target, breakAfterBytes);
    await new Promise<void>((resolve, reject) => proxy.#server.once("error", reject).listen(path, resolve));
    return proxy;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(producer: Socket): void {
    this.connections++;
    const service = connect(this.#target);
    let left = this.#breakAfterBytes();
    let isBroken = false;
    const forward = (from: Socket, to: Socket, isAnswer: boolean): void => {
      this.#sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        this.#sockets.delete(from);
        // Behind a break, what came before it is still on its way.
        if (!isBroken) to.destroy();
      });
      from.on("drain", () => to.resume());
      from.on("data", (chunk) => {
        if (isBroken) return;
        const part = chunk.subarray(0, left);
        left -= part.length;
        const breaks = left === 0;
        if (!breaks) {
          if (!to.write(part)) from.pause();
          return;
        }
        isBroken = true;
        this.broken++;
        if (isAnswer) this.brokenAnswers++;
        to.end(part);
        from.destroy();
      });
    };
    forward(producer, service, false);
    forward(service, producer, true);
  }
}
