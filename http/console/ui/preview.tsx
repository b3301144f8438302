import { useEffect, useRef, useState } from "preact/hooks";
import type { RunSummary } from "../data/api.js";
import { framePreview, framesOf } from "../data/previews.js";

/** The picture of a frame, read when it comes into view; a calm field where there is none. */
export function FramePreview({ frameId, alt }: { frameId: string; alt: string }) {
  return <Picture of={frameId} alt={alt} read={() => framePreview(frameId)} />;
}

/** The picture of a run's first frame. */
export function RunPreview({ run, alt = "" }: { run: Pick<RunSummary, "id" | "updated_at">; alt?: string }) {
  const read = async (): Promise<string | null> => {
    const [first] = await framesOf(run.id);
    return first === undefined ? null : framePreview(first);
  };
  return <Picture of={`${run.id} ${run.updated_at}`} alt={alt} read={read} />;
}

function Picture({ of, alt, read }: { of: string; alt: string; read: () => Promise<string | null> }) {
  const field = useRef<HTMLSpanElement>(null);
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    let isWanted = true;
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      // Without a picture the field stays as it is: the page says elsewhere that the service does not answer.
      read().then(
        (found) => isWanted && found !== null && setUrl(found),
        () => {},
      );
    });
    if (field.current !== null) observer.observe(field.current);
    return () => {
      isWanted = false;
      observer.disconnect();
    };
  }, [of]);
  return (
    <span class="preview" ref={field}>
      {url !== null && <img src={url} alt={alt} decoding="async" />}
    </span>
  );
}
