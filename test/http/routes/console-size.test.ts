import { readdirSync, readFileSync, statSync } from "node:fs";
import { gzipSync } from "node:zlib";
import t from "tap";

const BUILT = "dist/http/console-page";
const KB = 1_000;
const PAGE_LIMIT_BYTES = 120 * KB;
const CLOUD_LIMIT_BYTES = 250 * KB;

const gzippedBytes = (names: readonly string[]) =>
  names.reduce((sum, name) => sum + gzipSync(readFileSync(`${BUILT}/assets/${name}`), { level: 9 }).length, 0);

t.test("the console's page keeps its budget, with and without the part in 3D", async (t) => {
  const assets = readdirSync(`${BUILT}/assets`).filter((name) => /\.(js|css|svg)$/.test(name));
  // three names itself in its code, so that two copies on a page can find each other.
  const isCloud = (name: string) => /__THREE__/.test(readFileSync(`${BUILT}/assets/${name}`, "utf8"));
  const cloud = assets.filter(isCloud);
  const page = assets.filter((name) => !cloud.includes(name));
  const pageBytes = gzippedBytes(page);
  const cloudBytes = gzippedBytes(cloud);
  t.comment(`${(pageBytes / KB).toFixed(1)} kB, and ${(cloudBytes / KB).toFixed(1)} kB for the part in 3D`);
  t.ok(pageBytes <= PAGE_LIMIT_BYTES);
  t.ok(cloudBytes <= CLOUD_LIMIT_BYTES);
  const html = readFileSync(`${BUILT}/index.html`, "utf8");
  for (const name of cloud) t.notOk(html.includes(name), "it is loaded only when it is looked at");
  t.notMatch(readdirSync(`${BUILT}/assets`).join("\n"), /\.map$/m);
});

t.test("the licences of all that is bundled go with it", async (t) => {
  const text = readFileSync(`${BUILT}/LICENSES.md`, "utf8");
  for (const name of ["preact", "@preact/signals", "uplot"]) t.match(text, new RegExp(`^## ${name} `, "m"));
  t.ok(statSync(`${BUILT}/LICENSES.md`).size > 2_000);
});
