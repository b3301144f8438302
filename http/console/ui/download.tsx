import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { ApiError, apiFetch, apiUrl } from "../data/api.js";
import { apiKey } from "../data/session.js";
import { CellLink } from "./cell-link.js";

interface DownloadProps {
  path: string;
  name: string;
  /** The plant may not have it. The browser's own download would not say why. */
  isAtHub?: boolean;
  children: ComponentChildren;
}

/**
 * Saves a file of the interface. The browser's own download cannot send an API key. So if there is one, the page reads the file and hands
 * it over.
 */
export function Download({ path, name, isAtHub = false, children }: DownloadProps) {
  const state = useMemo(() => signal<"idle" | "reading" | Error>("idle"), [path]);
  if (apiKey.value === undefined && !isAtHub) {
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
      state.value = error as Error;
    }
  };
  return (
    <>
      <button type="button" class="quiet" disabled={state.value === "reading"} onClick={() => void save()}>
        {state.value === "reading" ? "Reading …" : children}
      </button>
      {state.value instanceof Error && (
        <span class="fault" role="alert">
          {state.value.message} <CellLink error={state.value instanceof ApiError ? state.value : undefined} />
        </span>
      )}
    </>
  );
}
