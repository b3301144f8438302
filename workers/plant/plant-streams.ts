/** The settings of the plant's streams. `plant init` makes them; everything else takes them as they are. */
import { CAPTURE_STREAM, CAPTURE_SUBJECTS } from "./capture-message.js";
import { LEAST_PAYLOAD_BYTES, LOG_STREAM, LOG_SUBJECTS } from "./log-message.js";

/** Settings of a stream, in the server's words. -1 or 0: no bound. */
export interface StreamSettings {
  name: string;
  subjects: string[];
  storage: string;
  retention: string;
  num_replicas: number;
  /** In nanoseconds. */
  max_age: number;
  max_bytes: number;
  max_msgs: number;
  max_msgs_per_subject: number;
  max_msg_size: number;
  /** What a full stream does: refuse the new message, or drop the oldest. */
  discard: string;
  deny_delete: boolean;
  deny_purge: boolean;
}

export interface PlantLimits {
  /** Servers that keep each message. */
  replicas: number;
  /** How long captures stay; null: until `captureBytes` is reached. */
  captureDays: number | null;
  /** What all captures together may take; null: no bound. */
  captureBytes: number | null;
}

const DAY_NS = 24 * 3_600 * 1e9;

export function plantStreams({ replicas, captureDays, captureBytes }: PlantLimits): StreamSettings[] {
  const shared = {
    storage: "file",
    retention: "limits",
    num_replicas: replicas,
    max_msgs: -1,
    max_msgs_per_subject: -1,
  };
  return [
    {
      ...{ ...shared, name: LOG_STREAM, subjects: [LOG_SUBJECTS], max_msg_size: -1 },
      // A reader must be able to start from nothing. So nothing is ever removed.
      ...{ max_age: 0, max_bytes: -1, discard: "new", deny_delete: true, deny_purge: true },
    },
    {
      ...{ ...shared, name: CAPTURE_STREAM, subjects: [CAPTURE_SUBJECTS], max_msg_size: -1 },
      ...{ max_age: (captureDays ?? 0) * DAY_NS, max_bytes: captureBytes ?? -1, discard: "old" },
      ...{ deny_delete: false, deny_purge: false },
    },
  ];
}

/** The first setting that is another one than asked for, for people; null if there is none. */
export function firstDifference(there: StreamSettings, wanted: StreamSettings): string | null {
  for (const key of Object.keys(wanted) as (keyof StreamSettings)[]) {
    const [is, should] = [JSON.stringify(there[key]), JSON.stringify(wanted[key])];
    if (is !== should) return `${key} ${is}, where ${should} was asked for`;
  }
  return null;
}

/** Why the log stream cannot be used: it might drop messages, or does not take them; empty if it can. */
export function logStreamFaults(settings: StreamSettings): string[] {
  const {
    max_age,
    max_bytes,
    max_msgs,
    max_msgs_per_subject,
    max_msg_size = -1,
    retention,
    storage,
    subjects,
  } = settings;
  const faults = Object.entries({ max_age, max_bytes, max_msgs, max_msgs_per_subject })
    .filter(([, value]) => value > 0)
    .map(([name, value]) => `${name} ${value}`);
  if (max_msg_size > 0 && max_msg_size < LEAST_PAYLOAD_BYTES) faults.push(`max_msg_size ${max_msg_size}`);
  if (retention !== "limits") faults.push(`retention ${retention}`);
  if (storage !== "file") faults.push(`storage ${storage}`);
  if (!subjects?.includes(LOG_SUBJECTS)) faults.push(`subjects without ${LOG_SUBJECTS}`);
  return faults;
}

/** Why the capture stream cannot be used; empty if it can. */
export function captureStreamFaults({ subjects, storage, max_msg_size = -1 }: StreamSettings): string[] {
  const faults: string[] = [];
  if (storage !== "file") faults.push(`storage ${storage}`);
  if (max_msg_size > 0 && max_msg_size < LEAST_PAYLOAD_BYTES) faults.push(`max_msg_size ${max_msg_size}`);
  if (!subjects?.includes(CAPTURE_SUBJECTS)) faults.push(`subjects without ${CAPTURE_SUBJECTS}`);
  return faults;
}
