import { execFileSync } from "node:child_process";
import t from "tap";
import { ServiceProcess } from "../helpers/process/service-process.js";

const SMALL_GROWTH = new URL("../helpers/process/small-heap-growth.js", import.meta.url).href;
const HEAP_GROWTH = new URL("../../workers/heap-growth.js", import.meta.url).href;

t.test("the service lets its heaps grow fourfold whatever factor V8 would choose", async (t) => {
  const service = await ServiceProcess.startFor(t, { environment: { NODE_OPTIONS: `--import=${SMALL_GROWTH}` } });
  // As V8 words it in Node 20, and later.
  await service.untilStdout(/(new limit: \d+ KB \(|factor )4\.0/);
  t.match(service.stdout, /(new limit: \d+ KB \(|factor )1\.3/, "before, the factor was the small one");
});

t.test("whoever says something about heaps has settled it", (t) => {
  const program = `import { letHeapsGrow } from ${JSON.stringify(HEAP_GROWTH)}; console.log(letHeapsGrow())`;
  const isSet = (options: readonly string[], nodeOptions = ""): string =>
    execFileSync(process.execPath, [...options, "--input-type=module", "-e", program], {
      encoding: "utf8",
      env: { ...process.env, NODE_OPTIONS: nodeOptions },
    }).trim();
  t.equal(isSet([]), "true");
  t.equal(isSet(["--max-old-space-size=512"]), "false");
  t.equal(isSet(["--max_semi_space_size=8"]), "false");
  t.equal(isSet([], "--max-http-header-size=9000 --max-old-space-size=512"), "false");
  t.equal(isSet([], '"--max-old-space-size=512"'), "false");
  t.equal(
    isSet(["--heapsnapshot-signal=SIGUSR2"], "--import=data:text/javascript,1"),
    "true",
    "says nothing of their size",
  );
  t.end();
});
