/** Fields of the form, each with what the service says of it. */
import { useId } from "preact/hooks";

/** What is wrong, by the name of the field. */
export type Faults = Readonly<Record<string, string>>;

interface FieldProps {
  name: string;
  label: string;
  attributes: Record<string, unknown>;
  faults: Faults;
}

export function Field({ name, label, attributes, faults }: FieldProps) {
  const faultId = useId();
  return (
    <label>
      {label}
      <input name={name} {...attributes} {...faultAttributes(faults[name], faultId)} />
      <Fault fault={faults[name]} id={faultId} />
    </label>
  );
}

/** Attributes of an input: what is wrong with it is read out with it. */
export function faultAttributes(fault: string | undefined, faultId: string) {
  return { "aria-invalid": fault !== undefined, "aria-describedby": fault === undefined ? undefined : faultId };
}

export function Fault({ fault, id }: { fault: string | undefined; id?: string }) {
  return fault === undefined ? null : (
    <span class="fault" role="alert" id={id}>
      {fault}
    </span>
  );
}

/** What has come up gets the keyboard. */
export function focus(input: HTMLInputElement | null): void {
  input?.focus();
}
