import { OWN_COMPONENT_KEYS } from "../health.js";
import { messagePackBytes } from "../json/document-size.js";
import { LIMITS } from "../limits.js";
import type { CellMessageOf } from "./cell-message-schema.js";
import type { CellChange } from "./change.js";
import type { DecisionContext } from "./decision-context.js";
import { invalid, RefusedError } from "./refusal.js";

type CellLevelMessage = CellMessageOf<
  "cell.put" | "component.put" | "component.delete" | "program.put" | "program.delete"
>;

/** Decides messages about the cell itself: identity, components, programs. */
export function decideCell(context: DecisionContext, message: CellLevelMessage): CellChange[] {
  switch (message.type) {
    case "cell.put": {
      const before = context.cell();
      const cell = {
        // An omitted field keeps its value. A null serial number is a value.
        kioskSerialNumber:
          message.kiosk_serial_number === undefined ? before.kioskSerialNumber : message.kiosk_serial_number,
        unitSystem: message.unit_system ?? before.unitSystem,
      };
      return [{ kind: "cell_put", cell }];
    }
    case "component.put":
      return decideComponentPut(context, message);
    case "component.delete":
      if (!context.hasComponent(message.key)) throw notFound("component", "/key", message.key);
      return [{ kind: "component_deleted", key: message.key }];
    case "program.put":
      return decideProgramPut(context, message);
    case "program.delete":
      if (context.program(message.id) === undefined) throw notFound("program", "/id", message.id);
      return [{ kind: "program_deleted", id: message.id }];
  }
}

function decideProgramPut(context: DecisionContext, { program }: CellMessageOf<"program.put">): CellChange[] {
  const replaced = context.program(program.id);
  if (replaced === undefined && context.programCount >= LIMITS.programs) {
    throw tooMany("programs", "/program/id", LIMITS.programs);
  }
  const replacedBytes = replaced === undefined ? 0 : messagePackBytes(replaced);
  const bytes = context.programBytes - replacedBytes + messagePackBytes(program);
  // A store may already have more bytes than this. There a change that makes them fewer is accepted.
  if (bytes > LIMITS.programBytes && bytes > context.programBytes) {
    throw new RefusedError("too_large", `all programs together would be larger than ${LIMITS.programBytes} bytes`, {
      path: "/program",
      value: bytes,
      allowed: LIMITS.programBytes,
    });
  }
  return [{ kind: "program_put", program }];
}

function decideComponentPut(context: DecisionContext, message: CellMessageOf<"component.put">): CellChange[] {
  const { key } = message;
  if ((OWN_COMPONENT_KEYS as readonly string[]).includes(key)) {
    throw new RefusedError("name_taken", `the service itself uses the component key ${key}`, {
      path: "/key",
      value: key,
      allowed: `a key other than ${OWN_COMPONENT_KEYS.join(", ")}`,
    });
  }
  // The key becomes a property name of a JSON object, where some readers give __proto__ another meaning.
  if (key === "__proto__") throw invalid("/key", key, "a key other than __proto__");
  if (!context.hasComponent(key) && context.componentCount >= LIMITS.components) {
    throw tooMany("components", "/key", LIMITS.components);
  }
  const row = {
    key,
    status: message.status,
    id: message.id ?? null,
    detail: message.detail ?? null,
    enabled: message.enabled ?? null,
    required: message.required ?? false,
  };
  return [{ kind: "component_put", row }];
}

export function notFound(what: string, path: string, value: string | number): RefusedError {
  return new RefusedError("not_found", `there is no ${what} ${value}`, { path, value, allowed: `an existing ${what}` });
}

/** @param count how many there would be with this message; one over the limit if the message brings only one */
export function tooMany(what: string, path: string, limit: number, count = limit + 1): RefusedError {
  return new RefusedError("too_large", `there would be more than ${limit} ${what}`, {
    path,
    value: count,
    allowed: limit,
  });
}
