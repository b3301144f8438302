import { createSecureContext } from "node:tls";
import { nodeFileSystem, readWholeFile } from "../storage/file-system.js";
import type { Front } from "./front-name.js";
import { type HttpServer, HttpServerError, type HttpServerOptions, type TlsFiles } from "./http-server.js";
import { startNodeServer } from "./node-server.js";
import { startUwsServer } from "./uws-server.js";

const START: Record<Front, (options: HttpServerOptions) => Promise<HttpServer>> = {
  uws: startUwsServer,
  node: startNodeServer,
};

/** @throws HttpServerError when this front does not load, the address is taken, or certificate and key do not fit */
export async function startFront(front: Front, options: HttpServerOptions): Promise<HttpServer> {
  if (options.tls !== undefined) await checkTlsFiles(options.tls);
  return START[front](options);
}

/** uWebSockets.js takes any file for a certificate, and then no connection. */
async function checkTlsFiles({ certPath, keyPath }: TlsFiles): Promise<void> {
  try {
    const [cert, key] = await Promise.all([certPath, keyPath].map((path) => readWholeFile(nodeFileSystem, path)));
    createSecureContext({ cert: Buffer.from(cert as Uint8Array), key: Buffer.from(key as Uint8Array) });
  } catch (error) {
    const files = `--tls-cert ${certPath} and --tls-key ${keyPath}`;
    throw new HttpServerError(`${files} cannot be served with: ${(error as Error).message}`);
  }
}
