import { useEffect, useRef } from "preact/hooks";
import type { Program, RunSummary } from "./api.js";
import { useLive } from "./live.js";
import type { Resource } from "./resource.js";

/** Pause before a read: all changes meanwhile cause this one read. */
const PAUSE_MS = 400;

/** Reads the resource again when a run changes that matters to it, and when changes may have been missed. */
export function useReloadOnChange(
  resource: Resource<unknown>,
  matters: (run: RunSummary) => boolean = () => true,
): void {
  const timer = useRef(0);
  const due = (): void => {
    if (timer.current !== 0) return;
    timer.current = window.setTimeout(() => {
      // Before the read: a change that comes during it makes one more read due.
      timer.current = 0;
      void resource.reload();
    }, PAUSE_MS);
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
 * Whether a run belongs to a program that is not on the list: nothing else tells of a new program. True once for each program: if it is
 * still not on the list after a read, it is on another page.
 */
export function useUnlistedProgram(list: readonly Program[]): (run: RunSummary) => boolean {
  const told = useRef(new Set<string>()).current;
  return ({ program_id: id }) => {
    if (told.has(id) || list.some((program) => program.id === id)) return false;
    told.add(id);
    return true;
  };
}
