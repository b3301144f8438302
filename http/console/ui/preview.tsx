import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type RunSummary } from "../data/api.js";
import { framePreview, type NoPreview, type Preview, runPreview } from "../data/previews.js";

/** The picture of a frame, read when it comes into view; or words why there is none. */
export function FramePreview({ frameId }: { frameId: string }) {
  return <Picture of={frameId} read={() => framePreview(frameId)} />;
}

/** The picture of a run's first frame. */
export function RunPreview({ run }: { run: Pick<RunSummary, "id" | "updated_at"> }) {
  return <Picture of={`${run.id} ${run.updated_at}`} read={() => runPreview(run.id)} />;
}

/** Pause after a read that failed. The service may be starting anew. */
const RETRY_MS = 3_000;

/** For each picture that was not seen yet, the function that reads it. */
const unseen = new Map<Element, () => void>();

/** One observer for all pictures: it reports those that come into view in their order on the page. */
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    unseen.get(target)?.();
  }
});

/** Also 401 and 403, which the service answers until it gets a key. */
function mayPass(error: unknown): boolean {
  return error instanceof ApiError && !error.isDamage && error.status !== 404;
}

function Picture({ of, read }: { of: string; read: () => Promise<Preview | NoPreview> }) {
  const field = useRef<HTMLSpanElement>(null);
  const [shown, setShown] = useState<Preview | NoPreview>();
  useEffect(() => {
    const element = field.current as HTMLSpanElement;
    let isWanted = true;
    let timer = 0;
    const fail = (error: unknown): void => {
      if (!isWanted) return;
      // Until then the field stays as it is: the page says elsewhere that the service does not answer.
      if (mayPass(error)) timer = window.setTimeout(() => observer.observe(element), RETRY_MS);
      else setShown("damaged");
    };
    unseen.set(element, () => void read().then((found) => isWanted && setShown(found), fail));
    observer.observe(element);
    return () => {
      isWanted = false;
      clearTimeout(timer);
      unseen.delete(element);
      observer.unobserve(element);
    };
  }, [of]);
  return (
    <span class="preview" ref={field}>
      {shown !== undefined && <Shown of={shown} />}
    </span>
  );
}

function Shown({ of }: { of: Preview | NoPreview }) {
  if (of === "none") return <>No frame</>;
  if (of === "removed") return <>Removed by retention</>;
  if (of === "notShipped") return <>Only at the cell</>;
  if (of === "damaged") return <>Damaged: no picture</>;
  return of.isEmpty ? <>Nothing was measured</> : <Measured {...of} />;
}

/** The picture has no text of its own: the text of the link beside it says the same. */
function Measured({ png, shape }: Preview) {
  const image = useRef<HTMLImageElement>(null);
  useEffect(() => {
    // The URL lasts as long as the picture is shown.
    const url = URL.createObjectURL(png);
    (image.current as HTMLImageElement).src = url;
    return () => URL.revokeObjectURL(url);
  }, [png]);
  // The picture is as wide as the field, or as high.
  const style = { aspectRatio: String(shape), width: `min(100cqw, ${100 * shape}cqh)` };
  return <img ref={image} alt="" decoding="async" style={style} />;
}
