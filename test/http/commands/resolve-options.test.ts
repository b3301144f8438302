import t from "tap";
import {
  DEMO_OPTIONS,
  HUB_OPTIONS,
  KEYS_ADD_OPTIONS,
  LISTEN_OPTIONS,
  PRODUCERS_REMOVE_OPTIONS,
  SERVE_OPTIONS,
} from "../../../http/commands/command-options.js";
import { environmentName, type OptionSources, resolveOptions } from "../../../http/commands/resolve-options.js";
import { listOf } from "../../helpers/list-of.js";

const KNOWN = new Set(Object.keys({ ...DEMO_OPTIONS, ...KEYS_ADD_OPTIONS }));

function sources(
  flags: OptionSources["flags"] = {},
  environment: OptionSources["environment"] = {},
  configuration?: unknown,
): OptionSources {
  return { flags, environment, knownNames: KNOWN, readConfiguration: async () => configuration, warn: () => {} };
}

const resolve = (...given: Parameters<typeof sources>) => resolveOptions(SERVE_OPTIONS, sources(...given));

t.test("`listen` takes what verifies events from each place; an empty variable is none", async (t) => {
  const here = (...given: Parameters<typeof sources>) => resolveOptions(LISTEN_OPTIONS, sources(...given));
  const none = { secret: null, "public-key": null, forward: undefined, answer: null };
  t.strictSame(await here(), { host: "127.0.0.1", port: 9000, ...none });
  t.match(await here({ "public-key": "key.json" }), { "public-key": "key.json" });
  t.match(await here({}, { INSPECTION_PUBLIC_KEY: "key.pem" }), { "public-key": "key.pem", secret: null });
  t.match(await here({}, { INSPECTION_SECRET: "", INSPECTION_PUBLIC_KEY: "" }), { secret: null, "public-key": null });
  await t.rejects(here({ secret: "" }), { message: '--secret: "" is not allowed; it must be a text' });
  await t.rejects(here({ "public-key": "" }), { message: /^--public-key: "" is not allowed/ });
});

t.test("the defaults are those of the contract", async (t) => {
  t.strictSame(await resolve(), {
    data: "data",
    host: "127.0.0.1",
    port: 8000,
    open: false,
    "api-keys": null,
    "cors-origin": [],
    "base-url": undefined,
    front: "auto",
    "max-connections": null,
    "live-streams": 512,
    "tls-cert": null,
    "tls-key": null,
    durability: "full",
    "finalize-timeout": 30_000,
    "orphan-timeout": null,
    "exit-after-failure": 60_000,
    "artefact-threads": null,
    "disk-low-bytes": null,
    "disk-critical-bytes": null,
    "retain-days": null,
    "retain-bytes": null,
    "retain-after-shipping": false,
    "allowed-host": [],
    "webhook-allow": [],
    "webhook-deny": [],
    "webhook-ca": null,
    "cell-socket": null,
    "cell-socket-access": "owner",
    "cell-listen": null,
    "cell-token-file": null,
    plant: null,
    "plant-credentials": null,
    "plant-ca": null,
    cell: null,
    "plant-captures": "reports",
    "plant-rate-bytes": null,
    "public-url": null,
    "log-level": "info",
    "log-format": "auto",
    config: null,
  });
  t.match(await resolveOptions(HUB_OPTIONS, sources()), { data: "hub-data", "cache-bytes": 10 * 1024 ** 3 });
  t.match(await resolveOptions(DEMO_OPTIONS, sources()), { data: "demo-data", runs: null, captures: null });
});

t.test("command line before environment before file before default", async (t) => {
  const file = { config: undefined, port: 3, host: "::1", durability: "none", open: true };
  const { config: _, ...configuration } = file;
  const values = await resolve(
    { port: "1", config: "some.json" },
    { INSPECTION_PORT: "2", INSPECTION_HOST: "127.0.0.2", INSPECTION_DATA: "", PATH: "/bin" },
    configuration,
  );
  t.match(values, { port: 1, host: "127.0.0.2", durability: "none", open: true, data: "data", "log-level": "info" });
  const byVariable = await resolve({}, { INSPECTION_CONFIG: "some.json", INSPECTION_OPEN: "false" }, configuration);
  t.match(byVariable, { port: 3, host: "::1", open: false, config: "some.json" });
  const retention = { INSPECTION_RETAIN_DAYS: "off", INSPECTION_RETAIN_BYTES: "1" };
  t.match(await resolve({}, retention), { "retain-days": null, "retain-bytes": 1 });
  for (const text of ["0", "-1", "1.5", "36501", ""]) {
    await t.rejects(resolve({ "retain-days": text }), /--retain-days: .* must be "off", or an integer from 1 to 36500/);
  }
  t.match(await resolve({ "retain-bytes": "2GiB" }), { "retain-bytes": 2 * 1024 ** 3 });
  for (const text of ["0", "0GiB", "-1", "1.5GiB", "5%", "99999999999TiB", ""]) {
    await t.rejects(
      resolve({ "retain-bytes": text }),
      /--retain-bytes: .* must be "off", or a size of at least 1 byte, such as/,
    );
  }
  t.equal(environmentName("cell-token-file"), "INSPECTION_CELL_TOKEN_FILE");
});

t.test("values are read as what they are", async (t) => {
  t.match(
    await resolve({
      "base-url": "https://results.factory:8443/cell-1/",
      "cell-listen": "[::1]:7000",
      "finalize-timeout": "1.5",
      "orphan-timeout": "2m",
      open: true,
      port: "0",
    }),
    {
      "base-url": "https://results.factory:8443/cell-1",
      "cell-listen": { host: "::1", port: 7000 },
      "finalize-timeout": 1500,
      "orphan-timeout": 120_000,
      open: true,
      port: 0,
    },
  );
  t.same((await resolve({ "allowed-host": "Cell-7.factory, bücher.example,a_b" }))["allowed-host"], [
    ...["cell-7.factory", "xn--bcher-kva.example", "a_b"],
  ]);
  // As browsers send an origin (Fetch standard): in lower case, without the default port.
  t.same(
    (await resolve({ "cors-origin": "https://MES.local:443, http://mes.local:8080,HTTP://mes.local:80,*" }))[
      "cors-origin"
    ],
    ["https://mes.local", "http://mes.local:8080", "http://mes.local", "*"],
  );
  t.same((await resolve({ "cors-origin": "https://bücher.example" }))["cors-origin"], [
    "https://xn--bcher-kva.example",
  ]);
  t.match(await resolve({ "disk-low-bytes": "2.5%", "disk-critical-bytes": "512MiB" }), {
    "disk-low-bytes": { share: 0.025 },
    "disk-critical-bytes": { bytes: 512 * 1024 * 1024 },
  });
  t.match(await resolve({ "disk-critical-bytes": "7" }), { "disk-critical-bytes": { bytes: 7 } });
  t.match(await resolve({ "cell-listen": "0.0.0.0:0", "finalize-timeout": "500ms", "orphan-timeout": "off" }), {
    "cell-listen": { host: "0.0.0.0", port: 0 },
    "finalize-timeout": 500,
    "orphan-timeout": null,
  });
});

t.test("a bad value is refused, naming where it stood, what came and what is allowed", async (t) => {
  const cases: [name: string, text: string, allowed: RegExp][] = [
    ["port", "65536", /from 0 to 65535/],
    ["port", "-1", /integer/],
    ["port", "80a", /integer/],
    ["port", "", /integer/],
    ["host", "a b", /host name/],
    ["data", "", /path/],
    ["base-url", "results.factory", /http or https URL/],
    ["base-url", "ftp://x", /http or https URL/],
    ["base-url", "http://u:p@x", /without user/],
    ["base-url", "http://x?y", /query/],
    ["allowed-host", "", /host names such as cell-7.factory, without a port/],
    ["allowed-host", "cell:8000", /without a port/],
    ["allowed-host", "http://cell", /without a port/],
    ["allowed-host", "*", /without a port/],
    ["allowed-host", "a,,b", /separated by commas/],
    ["allowed-host", "a b", /separated by commas/],
    ["allowed-host", "[::1]", /host names/],
    ["cors-origin", "https://mes.local/", /origins such as/],
    ["cors-origin", "https://u@mes.local", /origins such as/],
    ["cors-origin", "https://mes.local?x", /origins such as/],
    ["cors-origin", "mes.local", /origins such as/],
    ["front", "nginx", /one of auto, uws, node/],
    ["durability", "half", /full, interval, none/],
    ["finalize-timeout", "soon", /duration/],
    ["finalize-timeout", "-1", /duration/],
    ["finalize-timeout", "25h25", /duration/],
    ["orphan-timeout", "600h", /24 days/],
    ["exit-after-failure", "25d", /duration/],
    ["artefact-threads", "0", /1 to 256/],
    ["disk-low-bytes", "100%", /below 100%/],
    ["disk-critical-bytes", "1GB", /1GiB/],
    ["disk-critical-bytes", "-1", /bytes/],
    ["disk-critical-bytes", "9999999999999TiB", /bytes/],
    ["cell-listen", "7000", /HOST:PORT/],
    ["cell-listen", "x:70000", /HOST:PORT/],
    ["log-level", "loud", /one of trace/],
    ["log-format", "text", /one of auto, json, pretty/],
  ];
  for (const [name, text, allowed] of cases) {
    await t.rejects(resolve({ [name]: text }), { name: "UsageError", message: allowed }, `${name} ${text}`);
    await t.rejects(resolve({ [name]: text }), {
      message: `--${name}: ${JSON.stringify(text.replace("u:p@", "***@"))} is not allowed`,
    });
    if (text === "") continue;
    await t.rejects(resolve({}, { [environmentName(name)]: text }), { message: `${environmentName(name)}: ` });
    await t.rejects(resolve({ config: "f.json" }, {}, { [name]: text }), { message: `f.json, "${name}": ` });
  }
});

t.test("what others set in variables of our prefix is ignored with a line", async (t) => {
  const warned = async (environment: OptionSources["environment"], flags: OptionSources["flags"] = {}) => {
    const lines: string[] = [];
    const warn = (line: string) => lines.push(line);
    const { port } = await resolveOptions(SERVE_OPTIONS, { ...sources(flags, environment, { port: 7 }), warn });
    return { port, lines };
  };
  t.strictSame(await warned({ INSPECTION_SEED: "1", INSPECTIONS: "1", inspection_port: "x" }), {
    port: 8000,
    lines: [],
  });
  t.match(await warned({ INSPECTION_PROT: "1" }), {
    port: 8000,
    lines: listOf(/no option has such a name: INSPECTION_PROT \(/),
  });
  const many = Object.fromEntries(Array.from({ length: 34 }, (_, n) => [`INSPECTION_LINE${n}_SERVICE_HOST`, "x"]));
  t.match((await warned(many)).lines, listOf(/: INSPECTION_LINE0_SERVICE_HOST, .* and 24 more \(/));
  for (const link of ["tcp://10.0.0.1:80", "udp://[fd00::1]:9", "sctp://x"]) {
    const environment = { INSPECTION_PORT: link };
    t.match(await warned(environment), { port: 8000, lines: listOf(/^INSPECTION_PORT is ignored: "/) });
    t.match(await warned(environment, { config: "f.json" }), { port: 7 }, "the file has its turn");
    t.strictSame(await warned(environment, { port: "9" }), { port: 9, lines: [] });
    await t.rejects(resolve({ port: link }), { name: "UsageError" }, "on the command line it is meant");
  }
  for (const [declarations, link] of [
    [KEYS_ADD_OPTIONS, "/web/inspection"],
    [PRODUCERS_REMOVE_OPTIONS, "/project_web_1/inspection"],
  ] as const) {
    const lines: string[] = [];
    const given = (environment: OptionSources["environment"], flags: OptionSources["flags"] = {}) =>
      resolveOptions(declarations, { ...sources(flags, environment), warn: (line) => lines.push(line) });
    t.match(await given({ INSPECTION_NAME: link }), { name: null }, "Docker's link names no key and no producer");
    t.match(lines, listOf(/^INSPECTION_NAME is ignored: "/));
    t.match(await given({ INSPECTION_NAME: "press-7" }), { name: "press-7" });
    t.match(await given({ INSPECTION_NAME: link }, { name: "press-7" }), { name: "press-7" });
  }
  for (const wrong of ["80 ", "tcp", "http://10.0.0.1:80", "tcp:10.0.0.1", " tcp://x", "-1", "65536"]) {
    await t.rejects(
      resolve({}, { INSPECTION_PORT: wrong }),
      { name: "UsageError", message: /^INSPECTION_PORT: / },
      wrong,
    );
  }
  await t.rejects(resolve({}, { INSPECTION_RETAIN_DAYS: "tcp://10.0.0.1:80" }), {
    message: /^INSPECTION_RETAIN_DAYS: /,
  });
});

t.test("names that no option has are refused in the file", async (t) => {
  await t.rejects(resolve({ config: "f.json" }, {}, { prot: 1 }), {
    message: /f.json, "prot": this command has no such option; it has .*port/,
  });
  await t.rejects(
    resolve({ config: "f.json" }, {}, { seed: 1 }),
    { message: /"seed"/ },
    "an option of another command",
  );
  await t.rejects(resolve({ config: "f.json" }, {}, { config: "g" }), { message: /"config"/ });
  await t.rejects(resolve({ config: "f.json" }, {}, { port: null }), { message: /string, a number or a boolean/ });
  await t.rejects(resolve({ config: "f.json" }, {}, { port: [1] }), { message: /string, a number or a boolean/ });
  for (const content of [null, [], "x", 1]) {
    await t.rejects(resolve({ config: "f.json" }, {}, content), { message: /JSON object/ });
  }
});
