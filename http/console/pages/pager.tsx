/** The pages of a list, newest first. The address says which one is shown. */
import { useEditedInput } from "../data/edited-input.js";
import { whole } from "../data/units.js";
import { setQuery } from "../router.js";

/** The page that the address asks for, from 1. */
export function pageOf(query: URLSearchParams, aPage: number): number {
  const page = Math.floor(Number(query.get("page")));
  return page >= 1 && page <= Number.MAX_SAFE_INTEGER / aPage ? page : 1;
}

interface PagerProps {
  /** What is listed. */
  of: "runs" | "programs";
  page: number;
  /** Entries on all pages, and on a full one. */
  total: number;
  aPage: number;
}

export function Pager({ of, page, total, aPage }: PagerProps) {
  const pages = Math.max(1, Math.ceil(total / aPage));
  const goTo = (next: number): void => setQuery({ page: next <= 1 ? undefined : String(Math.min(next, pages)) });
  const edited = useEditedInput(page, (input) => goTo(Math.floor(input.valueAsNumber) || 1));
  if (pages === 1 && page === 1) return null;
  return (
    <nav class="pager" aria-label={`Pages of ${of}`}>
      <button type="button" disabled={page === 1} onClick={() => goTo(1)}>
        Newest
      </button>
      <button type="button" disabled={page === 1} onClick={() => goTo(page - 1)}>
        Newer
      </button>
      <label class="pager-page">
        <span class="hidden">Page</span>
        <input type="number" min={1} max={pages} {...edited} />
        <span>of {whole(pages)}</span>
      </label>
      <button type="button" disabled={page >= pages} onClick={() => goTo(page + 1)}>
        Older
      </button>
      <button type="button" disabled={page >= pages} onClick={() => goTo(pages)}>
        Oldest
      </button>
    </nav>
  );
}
