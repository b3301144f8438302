import type { ApiError } from "../data/api.js";
import { pageHref, place } from "../router.js";

/** At a hub, for captures that the plant does not have: the same page at the cell, if the cell was told its address. */
export function CellLink({ error }: { error: ApiError | undefined }) {
  const { cell, public_url: url } = (error?.params ?? {}) as { cell?: string | null; public_url?: unknown };
  const { page, id } = place.value;
  if (error?.code !== "not_shipped" || typeof url !== "string" || page === undefined) return null;
  if (!/^https?:\/\//.test(url)) return null;
  return (
    <a href={`${url.replace(/\/$/, "")}/console/${pageHref(page, id)}`} rel="noreferrer">
      This page at the cell {cell}
    </a>
  );
}
