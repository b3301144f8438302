import { createSecureContext } from "node:tls";
import { startNodeServer } from "./node-server.js";
import { readPemFile } from "./pem-file.js";
import type { FrontChoice } from "./server-name.js";
import { type HttpServer, HttpServerError, type HttpServerOptions, type TlsFiles } from "./server-options.js";
import { findUws, fullReason, shortReason } from "./uws-binary.js";
import { startUwsServer } from "./uws-server.js";

/** @throws HttpServerError if the chosen server does not load, the address is in use, or certificate and key do not fit */
export async function startFront(choice: FrontChoice, options: HttpServerOptions): Promise<HttpServer> {
  if (options.tls !== undefined) await checkTlsFiles(options.tls);
  if (choice === "node") return startNodeServer(options, "node:http");
  const found = findUws(options.uwsPackage);
  if ("uws" in found) return startUwsServer(options, found);
  const where = `on ${process.platform} ${process.arch} with Node ${process.version}`;
  const why = `no build of uWebSockets.js loads ${where} (${fullReason(found)})`;
  if (choice === "uws") throw new HttpServerError(`--front uws: ${why}; use --front node, which does not need it`);
  options.log.info(`${why}: serving with node:http instead`);
  return startNodeServer(options, `node:http; no uWebSockets.js: ${shortReason(found)}`);
}

/** uWebSockets.js accepts any file as a certificate, and then refuses every connection. */
async function checkTlsFiles({ certPath, keyPath }: TlsFiles): Promise<void> {
  try {
    const [cert, key] = [await readPemFile(certPath, "certificate"), await readPemFile(keyPath, "private key")];
    createSecureContext({ cert, key });
  } catch (error) {
    const files = `--tls-cert ${certPath} and --tls-key ${keyPath}`;
    throw new HttpServerError(`${files} cannot be used: ${(error as Error).message}`);
  }
}
