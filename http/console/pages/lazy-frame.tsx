import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const loaded = signal<typeof import("../frame/frame-page.js") | undefined>(undefined);

/** The page of a frame, which is larger than all others together: loaded when somebody opens it. */
export function LazyFrame({ frameId }: { frameId: string }) {
  useEffect(() => {
    void import("../frame/frame-page.js").then((module) => {
      loaded.value = module;
    });
  }, []);
  const { value: module } = loaded;
  return module === undefined ? <p class="loading">Reading …</p> : <module.FramePage frameId={frameId} />;
}
