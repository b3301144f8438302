import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { ApiError, apiUrl } from "../data/api.js";
import { apiKey } from "../data/session.js";
import { bytes } from "../data/units.js";
import { CellLink } from "../ui/cell-link.js";
import { saveFile } from "./save-file.js";

interface DownloadProps {
  path: string;
  name: string;
  /** The plant may not have it. The browser's own download would not say why. */
  isAtHub?: boolean;
  /** It may have gigabytes. */
  isLarge?: boolean;
  children: ComponentChildren;
}

/** Saves a file of the interface. The browser's own download cannot send an API key. So if there is one, the page reads the file. */
export function Download({ path, name, isAtHub = false, isLarge = false, children }: DownloadProps) {
  /** How much it has read so far, or why it could not; undefined while nothing is wanted. */
  const state = useMemo(() => signal<string | Error | undefined>(undefined), [path]);
  if (apiKey.value === undefined && !isAtHub) {
    return (
      <a href={apiUrl(path)} download={name}>
        {children}
      </a>
    );
  }
  const save = async (): Promise<void> => {
    state.value = "";
    try {
      await saveFile(path, name, isLarge, (readBytes) => {
        state.value = bytes(readBytes);
      });
      state.value = undefined;
    } catch (error) {
      state.value = error as Error;
    }
  };
  const isReading = typeof state.value === "string";
  return (
    <>
      <button type="button" class="quiet" disabled={isReading} onClick={() => void save()}>
        {isReading ? `Reading … ${state.value}` : children}
      </button>
      {state.value instanceof Error && (
        <span class="fault" role="alert">
          {state.value.message} <CellLink error={state.value instanceof ApiError ? state.value : undefined} />
        </span>
      )}
    </>
  );
}
