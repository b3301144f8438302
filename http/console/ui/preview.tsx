import { useEffect, useRef, useState } from "preact/hooks";
import type { RunSummary } from "../data/api.js";
import { framePreview, runPreview } from "../data/previews.js";

/** The picture of a frame, read when it comes into view; a calm field where there is none. */
export function FramePreview({ frameId }: { frameId: string }) {
  return <Picture of={frameId} read={() => framePreview(frameId)} />;
}

/** The picture of a run's first frame. */
export function RunPreview({ run }: { run: Pick<RunSummary, "id" | "updated_at"> }) {
  return <Picture of={`${run.id} ${run.updated_at}`} read={() => runPreview(run.id)} />;
}

/** What reads each picture that was not seen yet. */
const unseen = new Map<Element, () => void>();

/** One for all pictures: it tells of those that come into view in their order on the page. */
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    unseen.get(target)?.();
  }
});

/** Beside a link's text, which says the same: it has none of its own. */
function Picture({ of, read }: { of: string; read: () => Promise<string | null> }) {
  const field = useRef<HTMLSpanElement>(null);
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    const element = field.current as HTMLSpanElement;
    let isWanted = true;
    unseen.set(element, () => {
      // Without a picture the field stays as it is: the page says elsewhere that the service does not answer.
      read().then(
        (found) => isWanted && found !== null && setUrl(found),
        () => {},
      );
    });
    observer.observe(element);
    return () => {
      isWanted = false;
      unseen.delete(element);
      observer.unobserve(element);
    };
  }, [of]);
  return (
    <span class="preview" ref={field}>
      {url !== null && <img src={url} alt="" decoding="async" />}
    </span>
  );
}
