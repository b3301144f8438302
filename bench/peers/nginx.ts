import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { getOnce } from "../load/http/http-load.js";
import type { ServerProcess } from "../load/http/server-process.js";

export function hasNginx(): boolean {
  return spawnSync("nginx", ["-v"], { stdio: "ignore" }).error === undefined;
}

/** One worker that sends files by sendfile, without a log, as its documentation has it for static files. */
const CONFIGURATION = (directory: string, port: number) => `
daemon off;
master_process off;
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  default_type application/octet-stream;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  server { listen 127.0.0.1:${port}; location / { root ${directory}/files; } }
}
`;

/** nginx over one file, in a process of its own. The caller checks that both answer with the same bytes. */
export async function startNginx(directory: string, name: string, bytes: Uint8Array): Promise<ServerProcess> {
  mkdirSync(`${directory}/files`, { recursive: true });
  writeFileSync(`${directory}/files/${name}`, bytes);
  const port = await freePort();
  writeFileSync(`${directory}/nginx.conf`, CONFIGURATION(directory, port));
  const child: ChildProcess = spawn("nginx", ["-p", directory, "-c", `${directory}/nginx.conf`], { stdio: "ignore" });
  const ended = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  while (!(await answers(`${url}/${name}`))) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    await sleep(20);
  }
  return {
    url,
    pid: child.pid as number,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await getOnce(url)).status === 200;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
