import { deviationOf } from "../../../../core/run/deviation-span.js";
import type { Check, Defect, Run } from "../../data/api.js";
import { inUnit, lengthDecimals, plain, signed } from "../../data/units.js";
import { place, setQuery } from "../../router.js";
import { DeviationBar } from "../../ui/bars.js";
import { checkOutcome, Mark } from "../../ui/outcome.js";
import { Empty } from "../../ui/states.js";
import { checkNumber, Section, ShortText, Text, unitOf } from "../../ui/values.js";
import { VirtualTable } from "../../ui/virtual-rows.js";
import { checkHref } from "./defects-table.js";

const COLUMNS = [
  ["status", "Outcome"],
  ["name", "Check"],
  ["value", "Value"],
  ["nominal", "Nominal"],
  ["delta", "Deviation"],
  ["threshold", "Allowed"],
] as const;
type SortKey = (typeof COLUMNS)[number][0] | "share";

const STATUS_ORDER: readonly Check["status"][] = ["failed", "error", "not_evaluated", "warning", "passed"];

/** How much of the allowed deviation a check uses; what has none comes last. */
function shareOf({ value, nominal, threshold }: Check): number {
  if (value === null || value === undefined || !threshold) return Number.NEGATIVE_INFINITY;
  if (nominal === null || nominal === undefined) return threshold / value;
  return Math.abs((value - nominal) / threshold);
}

function sortValue(check: Check, key: SortKey): number | string {
  if (key === "status") return STATUS_ORDER.indexOf(check.status);
  if (key === "name") return check.name;
  if (key === "share") return -shareOf(check);
  return (key === "delta" ? deviationOf(check) : check[key]) ?? Number.POSITIVE_INFINITY;
}

/** Failed ones first unless another column is asked for; within equal ones, the order in which they were reported. */
export function sorted(checks: readonly Check[], key: SortKey, isDown: boolean): Check[] {
  const names = new Intl.Collator(undefined, { numeric: true });
  const sign = isDown ? -1 : 1;
  return checks
    .map((check) => ({ check, by: sortValue(check, key) }))
    .sort(({ by: a }, { by: b }) => {
      if (typeof a === "string" || typeof b === "string") return sign * names.compare(String(a), String(b));
      // What was not measured comes last in both directions.
      if (a === b) return 0;
      if (a === Number.POSITIVE_INFINITY) return 1;
      if (b === Number.POSITIVE_INFINITY) return -1;
      return sign * (a - b);
    })
    .map(({ check }) => check);
}

interface ChecksProps {
  checks: readonly Check[];
  /** Some of them mark the places of checks. */
  defects: readonly Defect[];
  run: Run;
}

export function ChecksTable({ checks, defects, run }: ChecksProps) {
  const { query } = place.value;
  const words = (query.get("check") ?? "").toLowerCase();
  const found = words === "" ? checks : checks.filter(({ name }) => name.toLowerCase().includes(words));
  const asked = query.get("sort") ?? "status";
  const key = ([...COLUMNS.map(([one]) => one), "share"] as SortKey[]).find((one) => one === asked) ?? "status";
  const isDown = query.get("direction") === "down";
  const sortBy = (next: SortKey): void => {
    const turns = next === key && !isDown;
    setQuery({ sort: next === "status" ? undefined : next, direction: turns ? "down" : undefined }, true);
  };
  const aside = (
    <>
      <Counts checks={checks} />
      {checks.length > 12 && (
        <input
          type="search"
          class="find"
          aria-label="Find checks by name"
          placeholder="Find"
          value={query.get("check") ?? ""}
          onInput={(event) => setQuery({ check: event.currentTarget.value }, true)}
        />
      )}
    </>
  );
  return (
    <Section title="Checks" aside={aside} class="checks">
      {checks.length === 0 ? (
        <Empty title={emptyTitle(run)} />
      ) : (
        <VirtualTable
          label="Checks"
          class="checks-table"
          rows={sorted(found, key, isDown)}
          columns={7}
          head={<Head sort={key} isDown={isDown} sortBy={sortBy} />}
          draw={(check, at) => <CheckRow key={at} check={check} href={checkHref(run, check, defects)} />}
        />
      )}
    </Section>
  );
}

const WORDS = { failed: "failed", error: "in error", not_evaluated: "not evaluated" } as const;

/** As the service counts: what passed with a warning has passed. */
function Counts({ checks }: { checks: readonly Check[] }) {
  const count = (status: Check["status"]) => checks.filter((check) => check.status === status).length;
  const warned = count("warning");
  const passed = warned + count("passed");
  const bad = (["failed", "error", "not_evaluated"] as const).filter((status) => count(status) > 0);
  return (
    <span class="count">
      {bad.map((status) => (
        <span key={status}>{`${count(status)} ${WORDS[status]}`}</span>
      ))}
      {passed > 0 && <span>{`${passed} passed${warned > 0 ? `, ${warned} of them with a warning` : ""}`}</span>}
    </span>
  );
}

function emptyTitle({ status }: Run): string {
  if (status === "failed" || status === "cancelled") return "A run that broke off or was cancelled has no report.";
  return status === "completed" ? "This run made no checks." : "No checks yet.";
}

/** A narrow screen shows the outcome, the name, the value and what is allowed. */
const CLASSES: Partial<Record<SortKey, string>> = {
  ...{ status: "", name: "", share: "wide-only", nominal: "number wide-only", delta: "number wide-only" },
};

interface HeadProps {
  sort: SortKey;
  isDown: boolean;
  sortBy(key: SortKey): void;
}

function Head({ sort, isDown, sortBy }: HeadProps) {
  const cell = (key: SortKey, word: string) => (
    <th
      key={key}
      scope="col"
      class={CLASSES[key] ?? "number"}
      aria-sort={sort === key ? (isDown ? "descending" : "ascending") : undefined}
    >
      <button type="button" class="sort" onClick={() => sortBy(key)}>
        {word}
        <span aria-hidden="true">{sort === key ? (isDown ? " ▾" : " ▴") : ""}</span>
      </button>
    </th>
  );
  const [status, name, ...numbers] = COLUMNS.map(([key, word]) => cell(key, word));
  return (
    <tr>
      {status}
      {name}
      {cell("share", "Within tolerance")}
      {numbers}
    </tr>
  );
}

interface PlacedCheck {
  check: Check;
  /** To its place on the surface; undefined: nobody said where it is. */
  href: string | undefined;
}

export function CheckName({ check, href }: PlacedCheck) {
  if (href === undefined) return <Text of={check.name} />;
  return (
    <a href={href} title="Show it on the surface">
      <ShortText of={check.name} />
    </a>
  );
}

function CheckRow({ check, href }: PlacedCheck) {
  const isLength = check.canonical_units === "mm";
  const decimals = lengthDecimals(check.threshold);
  const number = (value: number | null | undefined) => checkNumber(value, isLength, decimals);
  const deviation = deviationOf(check);
  const nominal = number(check.nominal);
  const allowed = number(check.threshold);
  const isMissing = check.value == null && nominal + allowed !== "" && isLength;
  return (
    <tr class={check.status === "failed" ? "row-fail" : ""}>
      <td>
        <Mark of={checkOutcome(check.status)} />
      </td>
      <th scope="row" class="check-name">
        <CheckName check={check} href={href} />
        {check.message && (
          <span class="note check-message" title={check.message}>
            <Text of={check.message} />
          </span>
        )}
      </th>
      <td class="wide-only">
        <DeviationBar check={check} />
      </td>
      <td class="number strong">
        {isMissing ? "–" : number(check.value)} {/* The unit of the whole row. */}
        <span class="unit">{isMissing || check.value != null ? unitOf(isLength) : ""}</span>
      </td>
      <td class="number wide-only">{nominal}</td>
      <td class="number wide-only">
        {deviation === undefined ? "" : isLength ? signed(inUnit(deviation), decimals) : plain(deviation)}
      </td>
      <td class="number">
        <span class="narrow-only">{nominal} </span>
        <span class="nowrap">{allowed === "" ? "" : `${nominal === "" ? "≥" : "±"} ${allowed}`}</span>
      </td>
    </tr>
  );
}
