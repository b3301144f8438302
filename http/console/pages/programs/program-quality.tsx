import type { Statistics } from "../../data/api.js";
import type { Resource } from "../../data/resource.js";
import { whole } from "../../data/units.js";
import { percentText } from "../../ui/bars.js";
import { Loaded } from "../../ui/states.js";
import { Section, Text } from "../../ui/values.js";
import { VirtualTable } from "../../ui/virtual-rows.js";
import type { ProgramQuality as Quality, QualityQuery } from "./read-quality.js";

type DefectKind = Statistics["defects"][number];

interface ProgramQualityProps {
  quality: Resource<Quality>;
  query: QualityQuery;
}

/** Yields of a program's runs, and their defects as a Pareto chart. */
export function ProgramQuality({ quality, query }: ProgramQualityProps) {
  const isAll = query.completed_since === "" && query.completed_until === "";
  return (
    <Section title={isAll ? "Quality over all runs" : "Quality in this time"}>
      <Loaded of={quality}>
        {({ statistics: { runs, first_pass_yield: first, final_yield: final, defects } }) => (
          <>
            <dl class="fact-list card-body">
              <div>
                <dt>First pass yield</dt>
                <dd>{percentText(first ?? undefined)}</dd>
              </div>
              <div>
                <dt>Final yield</dt>
                <dd>{percentText(final ?? undefined)}</dd>
              </div>
              <div>
                <dt>Completed runs</dt>
                <dd>{whole(runs.completed)}</dd>
              </div>
            </dl>
            {defects.length === 0 ? <p class="card-body note">No defects were found.</p> : <Pareto kinds={defects} />}
          </>
        )}
      </Loaded>
    </Section>
  );
}

/** The most frequent kind first, each with the share of all defects that it and those before it make up. */
function Pareto({ kinds }: { kinds: readonly DefectKind[] }) {
  const most = kinds[0]?.defects ?? 0;
  const sums: number[] = [];
  for (const { defects } of kinds) sums.push((sums.at(-1) ?? 0) + defects);
  const all = sums.at(-1) ?? 0;
  const head = (
    <tr>
      <th scope="col">Defect</th>
      <th scope="col" class="number">
        Count
      </th>
      <th scope="col" class="number">
        Runs
      </th>
      <th scope="col" class="number">
        Sum
      </th>
    </tr>
  );
  return (
    <VirtualTable
      label="Defects, the most frequent first"
      class="pareto"
      rows={kinds}
      columns={4}
      head={head}
      draw={({ type, defects, runs }, at) => (
        <tr key={at}>
          <th scope="row">
            <Text of={type} none="Without a kind" />
            <span class="pareto-bar" aria-hidden="true" style={{ width: `${((defects / most) * 100).toFixed(1)}%` }} />
          </th>
          <td class="number">{whole(defects)}</td>
          <td class="number">{whole(runs)}</td>
          <td class="number">{percentText((sums[at] ?? 0) / all)}</td>
        </tr>
      )}
    />
  );
}
