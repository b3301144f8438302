import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { place } from "../router.js";
import { Empty } from "../ui/states.js";

const loaded = signal<typeof import("../frame/frame-page.js") | undefined>(undefined);
const isLost = signal(false);

function load(): void {
  import("../frame/frame-page.js").then(
    (module) => {
      loaded.value = module;
    },
    () => {
      isLost.value = true;
    },
  );
}

// If the address leads here, the load does not wait until the rest of the page is drawn.
if (place.peek().page === "frames") load();

/** The page of a frame. It is larger than all others together, so it is loaded when somebody opens it. */
export function LazyFrame({ frameId }: { frameId: string }) {
  useEffect(() => {
    if (loaded.value === undefined) load();
  }, []);
  const { value: module } = loaded;
  if (module !== undefined) return <module.FramePage frameId={frameId} />;
  if (!isLost.value) return <p class="loading">Reading …</p>;
  // The service does not answer, or another release of it runs since the page was loaded.
  return (
    <Empty isPage title="This part of the page could not be loaded.">
      <button type="button" onClick={() => location.reload()}>
        Load the page again
      </button>
    </Empty>
  );
}
