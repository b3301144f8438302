import { Fragment } from "preact";
import { queryOf } from "../../data/api.js";
import { Download } from "../../downloads/download.js";
import { setQuery } from "../../router.js";
import { TimeInput } from "../../ui/time-input.js";
import type { QualityQuery } from "./read-quality.js";

/** From when until when runs count: by the time at which they ended. */
export function QualityFilter({ query }: { query: QualityQuery }) {
  const { completed_since: since, completed_until: until } = query;
  return (
    <search aria-label="Runs that count">
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <TimeInput
          label="Completed since"
          name="completed_since"
          at={since}
          change={(at) => setQuery({ completed_since: at })}
        />
        <TimeInput
          label="Completed before"
          name="completed_until"
          at={until}
          change={(at) => setQuery({ completed_until: at })}
        />
        <button
          type="button"
          disabled={since === "" && until === ""}
          onClick={() => setQuery({ completed_since: undefined, completed_until: undefined })}
        >
          All times
        </button>
      </form>
    </search>
  );
}

const FORMATS = [
  ["csv", "CSV"],
  ["ndjson", "NDJSON"],
  ["dfq", "Q-DAS"],
] as const;

/** The same checks for another tool. @param path of the program */
export function ChecksExport({ path, query }: { path: string; query: QualityQuery }) {
  return (
    <p class="card-body note">
      {query.check === "" ? "All checks" : "This check"} of these runs, one row each, as a file:{" "}
      {FORMATS.map(([format, name]) => (
        <Fragment key={format}>
          <Download path={`${path}/checks.${format}${queryOf({ ...query })}`} name={`checks.${format}`} isLarge>
            {name}
          </Download>{" "}
        </Fragment>
      ))}
    </p>
  );
}
