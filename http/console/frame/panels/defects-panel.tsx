import { sureText } from "../../data/units.js";
import { ShortText, ShowAll } from "../../ui/values.js";
import type { FrameModel } from "../frame-model.js";
import { goToDefect } from "../map/go-to-defect.js";
import type { FrameDefect } from "../measure/frame-defects.js";

/** The run's defects in this frame. A click on one goes there. */
export function DefectsPanel({ model, defects }: { model: FrameModel; defects: readonly FrameDefect[] }) {
  const placed = defects.filter(({ box2d, box3d }) => box2d !== undefined || box3d !== undefined);
  const elsewhere = defects.length - placed.length;
  const chosen = model.state.value.defect;
  return (
    <section class="panel" aria-label="Defects">
      <h2>
        Defects <span class="note">{placed.length}</span>
      </h2>
      {placed.length === 0 && <p class="note">The run has no defect that lies in this frame.</p>}
      {placed.length > 0 && (
        <ol class="defects">
          {placed.map((defect) => (
            <li key={defect.index} value={defect.index + 1}>
              <button
                type="button"
                aria-pressed={defect.index === chosen}
                onClick={() => goToDefect(model, defect, true)}
              >
                <span class="defect-number">{defect.index + 1}</span>
                <span class="defect-text">{nameOf(defect)}</span>
                <span class="note">
                  <ShortText of={details(defect)} none="" />
                </span>
              </button>
              <ShowAll key={defect.defect.description} of={defect.defect.description} />
            </li>
          ))}
        </ol>
      )}
      {elsewhere > 0 && (
        <p class="note">
          {elsewhere} more {elsewhere === 1 ? "has" : "have"} no place in this frame.
        </p>
      )}
    </section>
  );
}

/** A description often begins with the kind. */
function nameOf({ defect }: FrameDefect) {
  const kind = defect.type ?? "defect";
  const description = defect.description ?? "";
  const rest = description.startsWith(kind) ? description.slice(kind.length) : ` ${description}`;
  return (
    <>
      <b>
        <ShortText of={kind} />
      </b>
      <ShortText of={rest} />
    </>
  );
}

function details({ defect }: FrameDefect): string {
  const { severity, confidence } = defect;
  return [severity ?? "", sureText(confidence)].filter((text) => text !== "").join(" · ");
}
