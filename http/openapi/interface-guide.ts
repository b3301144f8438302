/** What somebody reads first who has only the document: CommonMark, as OpenAPI takes it. */
export const INTERFACE_GUIDE = `\
What the inspection cell produced: programs, runs, quality reports, defects, files and captures. Runs are read here; the cell starts and
cancels them. Webhooks push the same to other systems. What each field means, and its unit, stands under **Schema** beside each example.

### Follow new and changed runs

1. Read everything once: \`GET /runs\`, advancing \`offset\` by the entries received until you have \`total\`. Keep the runs by \`id\`.
2. Your mark is the latest \`updated_at\` of the **first** page.
3. From then on ask \`GET /runs?updated_since=<mark>\`: it lists what is new or has changed. Store each entry under its \`id\`. The next mark is
   the latest \`updated_at\` of the first page. If that page is empty, keep the old mark.

No two runs share an \`updated_at\`, so nothing is skipped. Webhooks tell you sooner; this also brings what they missed. Only where the cell's
clock was once set wrong, entries may lie in the future: leave them out when you choose the mark.

### Find what failed

A run and a part can fail, and these are two different things.

- **The run failed**: it broke off, and nobody knows whether the part is good. \`GET /runs?status=failed\`; \`error_message\` says why.
- **The part failed**: the run is \`completed\`, and at least one check failed. \`GET /runs?status=completed&quality_status=failed\`;
  \`GET /runs/{run_id}/quality-report\` has every check.

\`quality_status\` is the outcome of the inspection: \`passed\`, \`failed\`, \`indeterminate\` (no check failed, but one could not be evaluated),
or null without a report: before the first check, without checks, and for a run that failed or was cancelled. Defects never change it.

### Turn a frame into millimetres

A run's frames are in \`results.frame_ids\`. \`GET /sensor/frames/{frame_id}\` says in \`geometry\` how to do it.
\`GET /sensor/frames/{frame_id}/file.npy\` gives the raw heights, one row for each line, and its description shows the arithmetic in numpy.

- z = raw * \`height.scale_mm\` + \`height.offset_mm\`. A raw value among \`height.invalid\`, or NaN, is no measurement.
- x = \`x_origin_mm\` + column * \`x_pitch_mm\`; y = \`y_origin_mm\` + line * \`y_pitch_mm\`; both count from 0.

The PLY files are in millimetres already. The text chunks of the height map PNG say how its samples become millimetres.

### Times, lengths, ids

Times are UTC with six decimals and Z, so that they sort as text. Lengths are millimetres; only events have them in the cell's display units,
and say which. Ids are UUIDv7: they sort as things were created. Fields may be added in any release: ignore what you do not know.

### Webhooks

\`POST /webhooks\` registers a receiver; what it gets is described under Webhooks, at the end of this page. Check the signature, answer 2xx quickly
and work afterwards. An event can come twice: ignore an \`event_id\` that you had. Events can overtake each other: of each run keep the
one with the newest \`updated_at\`, and ignore older ones. After an outage of yours, read on from your mark.

### Errors

Every error is an \`ErrorResponse\`: programs decide by \`code\` and \`retryable\`, people read \`message\`, and \`params\` names the field that is wrong
and what is allowed. Worth retrying are 503 (after \`Retry-After\` seconds, where it stands), 500, and the 404 \`format_not_available\` whose
\`retryable\` is true: that format is still being made. Any other error stays until the request changes. A method that
the path does not have gets 405; \`Allow\` lists the methods that it has. Quote the header \`X-Trace-ID\` when you report a fault: it is in the service's log.

### Access

A service that is started with \`--api-keys\` wants \`Authorization: Bearer <key>\`. A key with the scope \`read\` may read; one with \`manage\` may
also register, change, delete, test and retry webhooks. Each operation says which it needs. Without \`--api-keys\` no key is asked for.
`;

/** The groups of operations, in the order they are shown. */
export const TAGS = [
  { name: "runs", description: "Programs executed against parts, and what they found." },
  { name: "programs", description: "Inspection definitions, made of steps." },
  { name: "files", description: "Files of runs: what was uploaded, and what was made of captures." },
  { name: "frames", description: "Captures of the sensors, as raw data, point clouds and pictures." },
  { name: "webhooks", description: "Receivers of events, and what became of the deliveries to them." },
  { name: "system", description: "The service itself." },
] as const;
