import { execFile, execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import * as commandOptions from "../../../http/commands/command-options.js";
import { environmentName } from "../../../http/commands/resolve-options.js";
import { MarkdownPage } from "../../helpers/documents/markdown-page.js";
import { RECEIVER_CERTIFICATE, RECEIVER_PRIVATE_KEY } from "../../helpers/http/test-authority.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { until } from "../../helpers/until.js";

const FILE = "http/package/Containerfile";
const PAGE = new MarkdownPage("http/package/README.md");
const run = promisify(execFile);

/** Instructions with their words, lines that end with a backslash joined. */
const instructions = readFileSync(FILE, "utf8")
  .replaceAll("\\\n", " ")
  .split("\n")
  .filter((line) => /^[A-Z]/.test(line))
  .map((line) => /^(\S+)\s+(.*)$/.exec(line) as unknown as [string, string, string]);
/** The words of an instruction that must stand there once. */
function only(name: string): string {
  const found = instructions.filter(([, instruction]) => instruction === name);
  if (found.length !== 1) throw new Error(`${found.length} times ${name}`);
  return (found[0] as [string, string, string])[2];
}

t.test("the image is for no root, has one volume, and asks whether it lives", async (t) => {
  t.match(only("USER"), /^[1-9]\d*:[1-9]\d*$/);
  t.equal(only("VOLUME"), "/inspection");
  const names = [...only("ENV").matchAll(/(\w+)=(\S+)/g)];
  const options = new Set(Object.keys(commandOptions.SERVE_OPTIONS).map(environmentName));
  for (const [, name, value] of names) {
    t.ok(options.has(name as string), String(name));
    if (value?.startsWith("/")) t.ok(value.startsWith("/inspection/"), `${value} is in the volume`);
  }
  t.same(JSON.parse(only("ENTRYPOINT")), ["inspection-service"]);
  t.same(JSON.parse(only("CMD")), ["serve"]);

  const words = JSON.parse(/CMD (\[.*\])$/.exec(only("HEALTHCHECK"))?.[1] as string) as string[];
  const asks = (environment: Record<string, string>): Promise<number> =>
    run(process.execPath, words.slice(1), { env: { ...process.env, ...environment } }).then(
      () => 0,
      ({ code }: { code: number }) => code,
    );
  t.equal(words[0], "node");
  t.match(words.at(-1), /\|\| 8000,/, "the port that it has if nothing is said");
  const folder = temporaryDirectory(t);
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(cert, RECEIVER_CERTIFICATE);
  writeFileSync(key, RECEIVER_PRIVATE_KEY);
  for (const tls of [{}, { INSPECTION_TLS_CERT: cert, INSPECTION_TLS_KEY: key }]) {
    const service = await ServiceProcess.startFor(t, { environment: tls });
    const environment = { ...tls, INSPECTION_PORT: String(service.port) };
    t.equal(await asks(environment), 0, "it answers");
    await service.end();
    t.equal(await asks(environment), 1, "nobody answers");
  }
});

const works = (engine: string): boolean => spawnSync(engine, ["info"], { timeout: 60_000 }).status === 0;
const engine = ["podman", "docker"].find(works);

/** What the guide says to type, with names of the test's own and a free port. Only podman has an option for the format. */
function guideCommands(engine: string, image: string): string[] {
  const [block = ""] = PAGE.blocks("## Container", "sh");
  const here = block
    .replaceAll(/^podman /gm, `${engine} `)
    .replaceAll(/ inspection-service(?= |$)/gm, ` ${image}`)
    .replaceAll(" inspection:/", ` ${image}-data:/`)
    .replaceAll("8000:8000", "127.0.0.1::8000");
  return (engine === "docker" ? here.replace(" --format docker", "") : here).trim().split("\n");
}

t.test("the guide has three commands: build, make a key, serve", async (t) => {
  t.same(guideCommands("docker", "test-7"), [
    "docker build -f http/package/Containerfile -t test-7 dist/packages",
    "docker run --rm -v test-7-data:/inspection test-7 keys add --file /inspection/keys.json --scope read",
    "docker run -d --read-only --cap-drop all -v test-7-data:/inspection -p 127.0.0.1::8000 test-7",
  ]);
});

t.test(
  "the image is built and serves, by the commands of the guide",
  {
    skip: engine === undefined && "neither podman nor docker runs here",
  },
  async (t) => {
    t.comment(engine as string);
    execFileSync(process.execPath, [".ci/package/package.mjs"]);
    const image = `inspection-service-test-${process.pid}`;
    const command = (...args: string[]) => run(engine as string, args, { timeout: 300_000 });
    const typed = async (text: string) => (await run("sh", ["-ec", text], { timeout: 300_000 })).stdout.trim();
    const [build, addKey, serve] = guideCommands(engine as string, image) as [string, string, string];
    try {
      await typed(build);
    } catch (error) {
      const { stderr } = error as { stderr: string };
      if (/pull|registry|dial tcp|manifest/i.test(stderr))
        return t.comment(`skipped: the base image cannot be had: ${stderr}`);
      throw error;
    }
    t.teardown(() => command("rmi", "-f", image));
    t.teardown(() => command("volume", "rm", `${image}-data`));
    const key = await typed(addKey);
    const id = await typed(serve);
    t.teardown(() => command("rm", "-f", id));
    const address = (await command("port", id, "8000")).stdout.trim();
    await answers(t, address, key);
  },
);

async function answers(t: Test, address: string, key: string): Promise<void> {
  const headers = { Authorization: `Bearer ${key}` };
  let status: number | undefined;
  await until("an answer of the container", async () => {
    status = (await fetch(`http://${address}/runs`, { headers }).catch(() => undefined))?.status;
    return status !== undefined;
  });
  t.equal(status, 200);
}
