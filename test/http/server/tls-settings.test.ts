import { spawnSync } from "node:child_process";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import { type ConnectionOptions, connect } from "node:tls";
import t, { type Test } from "tap";
import { jsonReply } from "../../../http/replies/reply.js";
import { onEveryFront, type Serve } from "../../helpers/http/handler-server.js";
import { certificateFiles } from "../../helpers/http/test-certificate.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

/** Self-signed, for an RSA key: only such a certificate could do without ECDHE. Undefined where openssl is not here. */
function rsaCertificate(folder: string): { certPath: string; keyPath: string } | undefined {
  const paths = { certPath: join(folder, "rsa-cert.pem"), keyPath: join(folder, "rsa-key.pem") };
  const files = ["-keyout", paths.keyPath, "-out", paths.certPath];
  const made = spawnSync("openssl", [
    ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", ...files],
  ]);
  return made.status === 0 ? paths : undefined;
}

async function serveTls(t: Test, serve: Serve, certificate: "ECDSA" | "RSA"): Promise<number | undefined> {
  const tls = certificate === "RSA" ? rsaCertificate(temporaryDirectory(t)) : certificateFiles(t);
  if (tls === undefined) return undefined;
  return (await serve(t, { "/now": () => jsonReply("now") }, { tls })).port;
}

/** The cipher that both sides take; undefined when they find none. */
function agreed(port: number, options: ConnectionOptions): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
    socket.on("secureConnect", () => {
      resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
      socket.destroy();
    });
    socket.on("error", () => resolve(undefined));
    socket.on("close", () => resolve(undefined));
  });
}

for (const certificate of ["ECDSA", "RSA"] as const) {
  const name = `TLS agrees on keys for one connection and authenticates what it encrypts, with a key of ${certificate}`;
  onEveryFront(t, name, async (t, serve) => {
    const port = await serveTls(t, serve, certificate);
    if (port === undefined) return t.comment("skipped: openssl is not here");
    const of12 = (ciphers: string): ConnectionOptions => ({
      ...{ minVersion: "TLSv1", maxVersion: "TLSv1.2", ciphers: `${ciphers}:@SECLEVEL=0` },
    });
    t.match(await agreed(port, {}), /^TLSv1\.3 /);
    for (const cipher of ["AES256-GCM-SHA384", "AES128-GCM-SHA256", "CHACHA20-POLY1305"]) {
      const name = `ECDHE-${certificate}-${cipher}`;
      t.equal(await agreed(port, of12(name)), `TLSv1.2 ${name}`);
    }
    const weak = ["AES256-GCM-SHA384", "AES128-GCM-SHA256", "AES128-SHA", "AES256-SHA256"];
    for (const cipher of [...weak, `ECDHE-${certificate}-AES128-SHA256`, `ECDHE-${certificate}-AES256-SHA`]) {
      t.equal(await agreed(port, of12(cipher)), undefined, cipher);
    }
    t.equal(await agreed(port, { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" }), undefined);
  });
}

// Side by side: each waits for the limit.
t.jobs = 2;
const atOnce = { buffered: true };
onEveryFront(t, "a TLS handshake that stops half way ends with its connection", atOnce, async (t, serve) => {
  const port = (await serveTls(t, serve, "ECDSA")) as number;
  const closed = await Promise.all(
    ["", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"].map(
      (begun) =>
        new Promise<number>((resolve) => {
          const startMs = performance.now();
          const socket = connectTcp({ port, host: "127.0.0.1" });
          socket.on("error", () => {});
          socket.on("close", () => resolve(performance.now() - startMs));
          socket.resume();
          socket.write(begun, "latin1");
        }),
    ),
  );
  for (const ms of closed) t.ok(ms < 20_000, `closed after ${ms} ms`);
});
