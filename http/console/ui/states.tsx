/** What is shown in place of a result: that it is read, that there is none, or what is wrong. */
import type { ComponentChildren } from "preact";
import type { ApiError } from "../data/api.js";
import { liveState } from "../data/live.js";
import type { Resource } from "../data/resource.js";
import { pageHref, place } from "../router.js";
import { CellLink } from "./cell-link.js";

interface EmptyProps {
  title: string;
  /** It is all that the page says. */
  isPage?: boolean;
  children?: ComponentChildren;
}

export function Empty({ title, isPage = false, children }: EmptyProps) {
  return (
    <div class="empty">
      {isPage ? <h1>{title}</h1> : <p class="empty-title">{title}</p>}
      {children}
    </div>
  );
}

interface LoadedProps<Shape> {
  of: Resource<Shape>;
  /** It is all that the page says. */
  isPage?: boolean;
  children: (data: Shape) => ComponentChildren;
}

/** The result, or why it is not there. An old result stays in view when a later read fails, with the reason above it. */
export function Loaded<Shape>({ of, isPage = false, children }: LoadedProps<Shape>) {
  const data = of.data.value;
  const error = of.error.value;
  if (data !== undefined) {
    return (
      <>
        {error !== undefined && !isToldAbove(error) && <FaultText error={error} />}
        {children(data)}
      </>
    );
  }
  if (error !== undefined) return <FaultText error={error} isPage={isPage} reload={() => void of.reload()} />;
  return (
    <p class="loading" aria-busy="true">
      Reading …
    </p>
  );
}

/** That some of many inspections are left out. */
export function LeftOut({ unreadable, of }: { unreadable: number; of: number }) {
  if (unreadable === 0) return null;
  return <p class="card-body note">{`${unreadable} of ${of} inspections cannot be read.`}</p>;
}

/** The page says once, at its top, that the connection is lost. */
function isToldAbove({ code }: ApiError): boolean {
  return code === "unreachable" && liveState.value === "lost";
}

function FaultText({ error, isPage = false, reload }: { error: ApiError; isPage?: boolean; reload?: () => void }) {
  const { page } = place.value;
  return (
    <div class="fault-box" role="alert">
      {isPage ? <h1>{sentence(error.message)}</h1> : <p>{sentence(error.message)}</p>}
      <p class="note">
        <code>{error.code}</code>
        {reload !== undefined && error.status !== 404 && (
          <button type="button" onClick={reload}>
            Try again
          </button>
        )}
        <CellLink error={error} />
        {error.status === 404 && error.code !== "not_shipped" && page !== undefined && (
          <a href={pageHref(page)}>{`All ${page}`}</a>
        )}
      </p>
    </div>
  );
}

/** The interface's messages begin in lower case and end without a full stop. */
export function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
