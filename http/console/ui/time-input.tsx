import { useEditedInput } from "../data/edited-input.js";

interface TimeInputProps {
  label: string;
  name: string;
  /** As the address has it; one that is no time is shown as none. */
  at: string;
  /** @param at in UTC; empty: no time */
  change: (at: string) => void;
}

/** A time in the viewer's zone. The address has it in UTC, so that it means the same to a colleague elsewhere. */
export function TimeInput({ label, name, at, change }: TimeInputProps) {
  const ms = Date.parse(at);
  const zoneMs = new Date(ms).getTimezoneOffset() * 60_000;
  const local = Number.isNaN(ms) ? "" : new Date(ms - zoneMs).toISOString().slice(0, 19);
  const edited = useEditedInput(local, ({ value }) => {
    const typed = new Date(value);
    change(Number.isNaN(typed.getTime()) ? "" : typed.toISOString());
  });
  return (
    <label class="filter-time">
      {label}
      <input type="datetime-local" name={name} step="1" {...edited} />
    </label>
  );
}
