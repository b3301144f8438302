/** The address: which page, of what, with which settings. Links are plain links; a click on one changes the page without loading it anew. */
import { computed, signal } from "@preact/signals";
import { consolePage, type PageName } from "../requests/console-pages.js";

export type { PageName };

interface Place {
  /** Undefined: there is no such page. */
  page: PageName | undefined;
  id: string | undefined;
  query: URLSearchParams;
}

const here = signal(location.href);

export const place = computed<Place>(() => {
  const { pathname, searchParams } = new URL(here.value);
  const base = new URL(document.baseURI).pathname;
  const below = pathname.startsWith(base) ? pathname.slice(base.length) : "";
  const [name = "", id = "", ...more] = below.split("/").map(decoded);
  const page = more.length > 0 ? undefined : consolePage(name || "now", id || undefined);
  return { page, id: id || undefined, query: searchParams };
});

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The link to a page, relative to the console's base. */
export function pageHref(page: PageName, id?: string, query: Readonly<Record<string, string>> = {}): string {
  const path = page === "now" ? "./" : id === undefined ? page : `${page}/${encodeURIComponent(id)}`;
  const text = new URLSearchParams(query).toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Goes to a link of the console. */
export function go(href: string): void {
  history.pushState(null, "", new URL(href, document.baseURI));
  here.value = location.href;
  window.scrollTo(0, 0);
  // A screen reader hears of the new page, and the keyboard goes on from its top.
  document.querySelector("main")?.focus({ preventScroll: true });
}

/** Changes settings in the address: an empty or undefined one leaves it. A step back undoes it unless `replaces`. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>, replaces = false): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  history[replaces ? "replaceState" : "pushState"](null, "", url);
  here.value = location.href;
}

export function startRouter(): void {
  addEventListener("popstate", () => {
    here.value = location.href;
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (link?.target !== "" || link.hasAttribute("download") || !link.href.startsWith(document.baseURI)) return;
    event.preventDefault();
    go(link.href);
  });
}
