/** What surrounds every page: navigation, units, the state of the stream, the lock. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useHealth } from "../data/health.js";
import { connectLive, liveState } from "../data/live.js";
import { forgetPreviews } from "../data/previews.js";
import { useReloadWhileSeen } from "../data/reload-while-seen.js";
import { forgetAll } from "../data/resource.js";
import { apiKey, forgetKey, isKeyWanted } from "../data/session.js";
import { setUnit, unit } from "../data/units.js";
import { LazyFrame } from "../pages/lazy-frame.js";
import { NowPage } from "../pages/now-page.js";
import { ProgramPage } from "../pages/program-page.js";
import { ProgramsPage } from "../pages/programs-page.js";
import { RunPage } from "../pages/run-page.js";
import { RunsPage } from "../pages/runs-page.js";
import { SystemPage } from "../pages/system-page.js";
import { WebhookPage } from "../pages/webhook-page.js";
import { WebhooksPage } from "../pages/webhooks-page.js";
import { type PageName, pageHref, place } from "../router.js";
import { KeyPrompt } from "./key-prompt.js";
import { Empty } from "./states.js";

const TITLES: Readonly<Record<PageName, string>> = {
  now: "Now",
  runs: "Runs",
  frames: "Frame",
  programs: "Programs",
  webhooks: "Webhooks",
  system: "System",
};
const NAVIGATION = ["now", "runs", "programs", "webhooks", "system"] as const;

export function Shell() {
  const { page, id } = place.value;
  useEffect(() => {
    const title = page === undefined ? "Not found" : page === "runs" && id !== undefined ? "Run" : TITLES[page];
    document.title = `${title} – Inspection console`;
  }, [page, id]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the page
      </button>
      <header class="bar">
        <nav aria-label="Pages">
          {NAVIGATION.map((name) => (
            <a key={name} href={pageHref(name)} aria-current={isWithin(name, page) ? "page" : undefined}>
              {TITLES[name]}
            </a>
          ))}
        </nav>
        <div class="bar-tools">
          <HealthMark />
          <LiveMark />
          <UnitSwitch />
          {apiKey.value !== undefined && (
            <button type="button" class="quiet" onClick={lock} title="Forget the API key in this tab">
              Lock
            </button>
          )}
        </div>
      </header>
      <main id="main" tabIndex={-1} class={page === undefined ? "" : `page-${page}`}>
        {liveState.value === "lost" && !isKeyWanted.value && (
          <p class="fault-box">Connection lost. {LIVE_TITLES.lost}</p>
        )}
        {isKeyWanted.value ? <KeyPrompt /> : <Page key={`${page}/${id}`} />}
      </main>
    </>
  );
}

function isWithin(name: PageName, page: PageName | undefined): boolean {
  return name === page || (name === "runs" && page === "frames");
}

function Page(): ComponentChildren {
  const { page, id } = place.value;
  switch (page) {
    case "now":
      return <NowPage />;
    case "runs":
      return id === undefined ? <RunsPage /> : <RunPage runId={id} />;
    case "frames":
      return id === undefined ? <NoPage /> : <LazyFrame frameId={id} />;
    case "programs":
      return id === undefined ? <ProgramsPage /> : <ProgramPage programId={id} />;
    case "webhooks":
      return id === undefined ? <WebhooksPage /> : <WebhookPage webhookId={id} />;
    case "system":
      return <SystemPage />;
    default:
      return <NoPage />;
  }
}

function NoPage() {
  return (
    <Empty isPage title="There is no such page.">
      <a href={pageHref("now")}>Go to what is happening now</a>
    </Empty>
  );
}

function lock(): void {
  forgetKey();
  forgetAll();
  forgetPreviews();
  connectLive();
}

const LIVE_WORDS = {
  connecting: "Connecting",
  live: "Live",
  lost: "Connection lost",
} as const;
const LIVE_TITLES = {
  connecting: "Opening the stream of changes",
  live: "Changes of runs appear as they happen",
  lost: "What you see may be old. The page tries again by itself.",
} as const;

function LiveMark() {
  const state = liveState.value;
  // The connection is well: the stream waits for the key.
  if (isKeyWanted.value) return null;
  return (
    <span class={`live live-${state}`} role="status" title={LIVE_TITLES[state]}>
      <i aria-hidden="true" />
      {LIVE_WORDS[state]}
    </span>
  );
}

/** Says only what is not well: a healthy cell needs no words. */
function HealthMark() {
  const resource = useHealth();
  useReloadWhileSeen(resource);
  const health = resource.data.value;
  if (health === undefined || health.status === "healthy" || resource.error.value !== undefined) return null;
  return (
    <a class={`health-mark state-${health.status}`} href={pageHref("system")}>
      {health.status === "down" ? "Cell down" : "Degraded"}
    </a>
  );
}

function UnitSwitch() {
  return (
    <fieldset class="switch">
      <legend class="hidden">Unit of lengths</legend>
      {(["mm", "in"] as const).map((one) => (
        <label key={one} class={unit.value === one ? "on" : ""}>
          <input type="radio" name="unit" checked={unit.value === one} onChange={() => setUnit(one)} />
          {one}
        </label>
      ))}
    </fieldset>
  );
}
