import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { apiFetch, apiUrl } from "../data/api.js";
import { apiKey } from "../data/session.js";

/** Saves a file of the interface. The browser's own download cannot send an API key. So if there is one, the page reads the file and hands it over. */
export function Download({ path, name, children }: { path: string; name: string; children: ComponentChildren }) {
  const state = useMemo(() => signal<"idle" | "reading" | string>("idle"), [path]);
  if (apiKey.value === undefined) {
    return (
      <a href={apiUrl(path)} download={name}>
        {children}
      </a>
    );
  }
  const save = async (): Promise<void> => {
    state.value = "reading";
    try {
      const url = URL.createObjectURL(await (await apiFetch(path)).blob());
      const link = Object.assign(document.createElement("a"), { href: url, download: name });
      link.click();
      URL.revokeObjectURL(url);
      state.value = "idle";
    } catch (error) {
      state.value = (error as Error).message;
    }
  };
  return (
    <>
      <button type="button" class="quiet" disabled={state.value === "reading"} onClick={() => void save()}>
        {state.value === "reading" ? "Reading …" : children}
      </button>
      {state.value !== "idle" && state.value !== "reading" && (
        <span class="fault" role="alert">
          {state.value}
        </span>
      )}
    </>
  );
}
