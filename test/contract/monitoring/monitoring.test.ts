import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { MarkdownPage } from "../../helpers/documents/markdown-page.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { unpackedDebianPackage } from "../../helpers/system/debian-package.js";

const FOLDER = "http/monitoring";
const RULES = "alerts.yml";
const RULE_TESTS = "test/contract/monitoring/alerts.test.yml";
const rules = readFileSync(join(FOLDER, RULES), "utf8");

interface Panel {
  title: string;
  type: string;
  gridPos: { h: number; w: number; x: number; y: number };
  targets?: { expr: string }[];
}
const dashboard = JSON.parse(readFileSync(join(FOLDER, "dashboard.json"), "utf8")) as {
  panels: Panel[];
  templating: { list: { query: string }[] };
};
const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

function promtool(): { path: string } | { missing: string } {
  if (spawnSync("promtool", ["--version"]).status === 0) return { path: "promtool" };
  const unpacked = unpackedDebianPackage("prometheus");
  return "missing" in unpacked ? unpacked : { path: join(unpacked.root, "usr/bin/promtool") };
}

/** Names of metrics in PromQL, without what belongs to a histogram or a counter of Prometheus itself. */
function metricsIn(text: string): string[] {
  const names = text.matchAll(/\b(?:inspection|process|nodejs)_[a-z0-9_]+\b/g);
  return [...new Set([...names].map(([name]) => name.replace(/_(bucket|sum|count)$/, "")))].sort();
}

t.test("every metric that dashboard, alerts and guide name is one that the service has", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const text = await (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text();
  const there = new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name));
  const sources: Record<string, string> = {
    alerts: [...rules.matchAll(/expr: (.*)/g)].map(([, expression]) => expression).join("\n"),
    dashboard: [...expressions, ...dashboard.templating.list.map(({ query }) => query)].join("\n"),
    guide: readFileSync(join(FOLDER, "README.md"), "utf8").replaceAll("job_name", ""),
  };
  for (const [source, named] of Object.entries(sources)) {
    const names = metricsIn(named);
    t.ok(names.length > 3, `${source} names ${names.length}`);
    t.same(
      names.filter((name) => !there.has(name)),
      [],
      source,
    );
  }
  const statuses = [...text.matchAll(/^inspection_component_status\{key="(\w+)",id="",status="(\w+)"\} 1$/gm)];
  t.same(
    statuses.map(([, key, status]) => [key, status]),
    ["log", "disk", "recorder", "dispatcher", "artefacts"].map((key) => [key, "healthy"]),
  );
});

t.test("the panels of the dashboard do not cover each other", async (t) => {
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.panels) {
    t.ok(gridPos.x + gridPos.w <= 24, title);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        if (taken.has(`${x} ${y}`)) t.fail(`${title} covers another panel`);
        taken.add(`${x} ${y}`);
      }
    }
  }
  t.ok(expressions.length > 20, `${expressions.length} expressions`);
});

t.test("the runbook has each alert, and each alert leads to it", async (t) => {
  const alerts = [...rules.matchAll(/- alert: (\w+)\n(?:.*\n)*?.*runbook: RUNBOOK\.md#(\w+)/g)];
  const names = alerts.map(([, name]) => name as string);
  t.same(names, new MarkdownPage(join(FOLDER, "RUNBOOK.md")).headings(2));
  t.same(
    alerts.map(([, , anchor]) => anchor),
    names.map((name) => name.toLowerCase()),
  );
  t.equal(rules.match(/- alert:/g)?.length, alerts.length);
});

const checker = promtool();

t.test(
  "promtool takes alerts and expressions, and each alert fires when it should",
  {
    skip: "missing" in checker && checker.missing,
  },
  async (t) => {
    const folder = temporaryDirectory(t);
    copyFileSync(join(FOLDER, RULES), join(folder, RULES));
    copyFileSync(RULE_TESTS, join(folder, "alerts.test.yml"));
    const recorded = expressions.map((expr, at) => ({
      record: `panel:${at}`,
      expr: expr.replaceAll("$instance", ".*"),
    }));
    writeFileSync(join(folder, "panels.yml"), JSON.stringify({ groups: [{ name: "panels", rules: recorded }] }));
    const run = (...args: string[]) => {
      const { path } = checker as { path: string };
      const { status, stdout, stderr } = spawnSync(path, args, { cwd: folder, encoding: "utf8" });
      t.equal(status, 0, `promtool ${args.join(" ")}\n${stdout}${stderr}`);
    };
    run("check", "rules", RULES);
    run("check", "rules", "panels.yml");
    run("test", "rules", "alerts.test.yml");
    // A rule that never fires fails.
    writeFileSync(join(folder, RULES), rules.replace("inspection_producers < 1", "inspection_producers < 0"));
    const { path } = checker as { path: string };
    t.equal(spawnSync(path, ["test", "rules", "alerts.test.yml"], { cwd: folder }).status, 1);
  },
);
