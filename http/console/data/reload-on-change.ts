import { useEffect, useRef } from "preact/hooks";
import type { Program, RunSummary } from "./api.js";
import { useLive } from "./live.js";
import type { Resource } from "./resource.js";

/** Least time between two reads, however many runs change. */
const PAUSE_MS = 400;

/**
 * Reads the resource again when a run changes that matters to it, and when changes may have been missed. @param pauseMs at least,
 * between two reads
 */
export function useReloadOnChange(
  resource: Resource<unknown>,
  matters: (run: RunSummary) => boolean = () => true,
  pauseMs = PAUSE_MS,
): void {
  const timer = useRef(0);
  const due = (): void => {
    if (timer.current !== 0) return;
    timer.current = window.setTimeout(() => {
      // Before the read: a change that comes during it makes one more read due.
      timer.current = 0;
      void resource.reload();
    }, pauseMs);
  };
  useLive({ onRun: (run) => matters(run) && due(), onReset: due });
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = 0;
    },
    [resource],
  );
}

/**
 * Whether a run tells of a program that is not on the list: nothing tells of a new program but its first run. True once for each
 * program, since one that stays off the list is on another page of it.
 */
export function useUnlistedProgram(list: readonly Program[]): (run: RunSummary) => boolean {
  const told = useRef(new Set<string>()).current;
  return ({ program_id: id }) => {
    if (told.has(id) || list.some((program) => program.id === id)) return false;
    told.add(id);
    return true;
  };
}
