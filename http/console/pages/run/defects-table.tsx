import type { Check, Defect, Run } from "../../data/api.js";
import { fixed, inUnit, sureText, unit } from "../../data/units.js";
import { pageHref } from "../../router.js";
import { Scroll } from "../../ui/scroll.js";
import { Section, Text } from "../../ui/values.js";

/** The link to a defect on its surface: the frame that its file was made of. @param at its number in the report, from 0 */
export function surfaceHref(run: Run, { region_2d: flat, region_3d: deep }: Defect, at: number): string | undefined {
  const names = [flat?.file, deep?.file];
  const file = (run.files ?? []).find(({ name, frame_id: id }) => id && names.includes(name));
  return file?.frame_id ? pageHref("frames", file.frame_id, { defect: String(at) }) : undefined;
}

/** The link to the place of a check, if its producer named the defect that marks it. */
export function checkHref(run: Run, { metadata }: Check, defects: readonly Defect[]): string | undefined {
  const at = defects.findIndex(({ id }) => typeof id === "string" && id === metadata?.defect_id);
  const defect = defects[at];
  return defect && surfaceHref(run, defect, at);
}

function whereOf({ region_2d: flat, region_3d: deep }: Defect): string {
  const decimals = unit.value === "in" ? 3 : 2;
  const at = deep?.location;
  if (at?.length === 3)
    return `${at.map((mm, axis) => `${"xyz"[axis]} ${fixed(inUnit(mm), decimals)}`).join(", ")} ${unit.value}`;
  const box = flat?.bbox;
  return box?.length === 4 ? `column ${box[0]}–${box[2]}, line ${box[1]}–${box[3]}` : "";
}

/** @param defects undefined while they are read, and for a run without report */
export function DefectsTable({ run, defects }: { run: Run; defects: readonly Defect[] | undefined }) {
  if (defects === undefined || defects.length === 0) return null;
  return (
    <Section title="Defects" aside={<span class="count">{defects.length}</span>}>
      <Scroll label="Defects">
        <ul class="defect-list">
          {defects.map((defect, at) => {
            const href = surfaceHref(run, defect, at);
            const where = whereOf(defect);
            const words = (
              <>
                <strong>
                  <Text of={defect.type} none="Defect" />
                </strong>
                {defect.severity && (
                  <span class="tag">
                    <Text of={defect.severity} />
                  </span>
                )}
                <span class="note">{sureText(defect.confidence)}</span>
              </>
            );
            return (
              <li key={defect.id ?? at}>
                {href === undefined ? (
                  <span class="defect-title">{words}</span>
                ) : (
                  <a class="defect-title" href={href} title="Show it on the surface">
                    {words}
                  </a>
                )}
                {defect.description && (
                  <span>
                    <Text of={defect.description} />
                  </span>
                )}
                {where !== "" && <span class="note mono">{where}</span>}
              </li>
            );
          })}
        </ul>
      </Scroll>
    </Section>
  );
}
