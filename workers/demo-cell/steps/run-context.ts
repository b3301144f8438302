import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import type { Random } from "../../../core/random.js";
import type { Defect, QualityCheck } from "../../../core/run/quality.js";
import type { Pace } from "../pace.js";
import type { Inspection } from "../part/part-source.js";

/** What the steps of one run share. */
export interface RunContext {
  runId: string;
  serialNumber: string;
  random: Random;
  pace: Pace;
  /** Sends a message of the run. Resolves when the link has taken it. A refusal is thrown only when the run ends. */
  say(message: CellMessage, payload?: Uint8Array): Promise<void>;
  newId(): string;
  /** The part under the sensor, once a step has looked at it. */
  inspect(): Promise<Inspection | undefined>;
  /** Everything that was found, for the report file. */
  checks: QualityCheck[];
  defects: Defect[];
  /** True if a scene decides the run: nothing else goes wrong in it by chance. */
  isSteady: boolean;
  /** The step at which a fault of the machine stops the run. It is undefined for most runs. */
  faultyStep: number | undefined;
}

/** The machine could not do a step: the run fails. */
export class StepFaultError extends Error {}
