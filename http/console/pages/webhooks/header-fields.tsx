/** The custom headers of a webhook. The service never tells their values, so they are kept or replaced as a whole. */
import { useId, useRef, useState } from "preact/hooks";
import { CUSTOM_HEADER_LIMITS } from "../../../../core/webhook/custom-headers.js";
import { ApiError } from "../../data/api.js";
import { Text } from "../../ui/values.js";
import { Fault, type Faults, faultAttributes, focus } from "./form-fields.js";

interface HeaderFieldsProps {
  /** Names of the headers that there are. */
  names: readonly string[];
  faults: Faults;
}

export function HeaderFields({ names, faults }: HeaderFieldsProps) {
  const [isReplacing, setIsReplacing] = useState(names.length === 0);
  const [rows, setRows] = useState<readonly number[]>([]);
  const addButton = useRef<HTMLButtonElement>(null);
  const add = (): void => setRows([...rows, (rows.at(-1) ?? 0) + 1]);
  const remove = (row: number): void => {
    setRows(rows.filter((one) => one !== row));
    // The button that had the keyboard goes.
    addButton.current?.focus();
  };
  return (
    <fieldset class="header-list">
      <legend>Headers that go with each delivery</legend>
      {names.length > 0 && (
        <>
          <p>
            <Text of={names.join(", ")} /> <span class="note">Their values cannot be read.</span>
          </p>
          <div class="choice-list">
            <label>
              <input
                type="checkbox"
                name="replace_headers"
                checked={isReplacing}
                onChange={(event) => setIsReplacing(event.currentTarget.checked)}
              />
              Replace them all by those below
            </label>
          </div>
        </>
      )}
      {isReplacing && rows.map((row, at) => <Row key={row} at={at} faults={faults} remove={() => remove(row)} />)}
      <Fault fault={faults.headers} />
      {isReplacing && (
        <p class="buttons">
          <button type="button" ref={addButton} onClick={add}>
            Add a header
          </button>
        </p>
      )}
    </fieldset>
  );
}

function Row({ at, faults, remove }: { at: number; faults: Faults; remove(): void }) {
  const [name, setName] = useState("");
  const faultId = useId();
  const fault = faults[headerField(name)];
  const attributes = { autocomplete: "new-password", ...faultAttributes(fault, faultId) };
  return (
    <div>
      <div class="header-row">
        <label>
          Header {at + 1}
          <input
            name="header_name"
            ref={focus}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
            {...attributes}
          />
        </label>
        <label>
          Value {at + 1}
          <input name="header_value" type="password" {...attributes} />
        </label>
        <button type="button" aria-label={`Remove header ${at + 1}`} onClick={remove}>
          Remove
        </button>
      </div>
      <Fault fault={fault} id={faultId} />
    </div>
  );
}

/** How the service names a header in its faults: a JSON Pointer (RFC 6901), in which a long name is cut. */
function headerField(name: string): string {
  const cut = name.trim().slice(0, CUSTOM_HEADER_LIMITS.nameCharacters);
  return `headers/${cut.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/**
 * The headers of the form; undefined if they stay as they are. Values are as they were typed.
 * @throws ApiError for a name that is there twice: an object has it once, so the service would not see the other
 */
export function headersOf(form: FormData): Record<string, string> | undefined {
  const values = form.getAll("header_value").map(String);
  const rows = form.getAll("header_name").map((name, at) => [String(name).trim(), values[at] as string] as const);
  const given = rows.filter(([name, value]) => name !== "" || value !== "");
  if (given.length === 0 && !form.has("replace_headers")) return undefined;
  const [twice] = given.find(([name], at) => given.findIndex(([other]) => other === name) < at) ?? [];
  if (twice !== undefined) {
    const params = { field: headerField(twice), allowed: "given once" };
    throw new ApiError(422, "invalid_parameter", "a header is given twice", params);
  }
  return Object.fromEntries(given);
}
