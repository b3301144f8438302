import { execFile, execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import * as commandOptions from "../../../http/commands/command-options.js";
import { environmentName } from "../../../http/commands/resolve-options.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";

const FILE = "http/package/Containerfile";
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
  const service = await ServiceProcess.startFor(t);
  const asks = (port: number): Promise<number> =>
    run(
      process.execPath,
      words.slice(1).map((word) => word.replace(":8000/", `:${port}/`)),
    ).then(
      () => 0,
      ({ code }: { code: number }) => code,
    );
  t.equal(words[0], "node");
  t.equal(await asks(service.port), 0, "it answers");
  await service.end();
  t.equal(await asks(service.port), 1, "nobody answers");
});

const works = (engine: string): boolean => spawnSync(engine, ["info"], { timeout: 60_000 }).status === 0;
const engine = ["podman", "docker"].find(works);

t.test(
  "the image is built and serves",
  {
    skip: engine === undefined && "neither podman nor docker runs here",
  },
  async (t) => {
    t.comment(engine as string);
    execFileSync(process.execPath, [".ci/package/package.mjs"]);
    const image = `inspection-service-test-${process.pid}`;
    const command = (...args: string[]) => run(engine as string, args, { timeout: 300_000 });
    try {
      await command("build", "-f", FILE, "-t", image, "dist/packages");
    } catch (error) {
      const { stderr } = error as { stderr: string };
      if (/pull|registry|dial tcp|manifest/i.test(stderr))
        return t.comment(`skipped: the base image cannot be had: ${stderr}`);
      throw error;
    }
    t.teardown(() => command("rmi", "-f", image));
    const volume = `${image}-data`;
    t.teardown(() => command("volume", "rm", volume));
    const mounted = ["-v", `${volume}:/inspection`, image];
    const add = ["keys", "add", "--file", "/inspection/keys.json", "--scope", "read"];
    const key = (await command("run", "--rm", ...mounted, ...add)).stdout.trim();
    const serving = ["run", "-d", "--read-only", "--cap-drop", "all", "-p", "127.0.0.1::8000", ...mounted];
    const id = (await command(...serving)).stdout.trim();
    t.teardown(() => command("rm", "-f", id));
    const address = (await command("port", id, "8000")).stdout.trim();
    await answers(t, address, key);
  },
);

async function answers(t: Test, address: string, key: string): Promise<void> {
  const headers = { Authorization: `Bearer ${key}` };
  for (;;) {
    const answer = await fetch(`http://${address}/runs`, { headers }).catch(() => undefined);
    if (answer === undefined) {
      await pause(50);
      continue;
    }
    t.equal(answer.status, 200);
    return;
  }
}
