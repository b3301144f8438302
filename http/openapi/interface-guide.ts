/** The introduction of the OpenAPI document, in CommonMark: for readers who have nothing else. */
export const INTERFACE_GUIDE = `\
The results of the inspection cell: programs, runs, quality reports, defects, files and captures. Runs can only be read here: the cell
starts and cancels them. Webhooks send the same results to other systems. **Schema**, beside each example, explains each field and its unit.

### Follow new and changed runs

1. Read everything once: \`GET /runs\`, advancing \`offset\` by the entries received until you have \`total\`. Keep the runs by \`id\`.
2. Your mark is the latest \`updated_at\` of the **first** page that you read.
3. From then on read **all** pages of \`GET /runs?updated_since=<mark>\`, as in step 1: they list the runs that are new or have changed. Store
   each entry under its \`id\`. Then replace the mark by the latest \`updated_at\` of the first page. If that page was empty, keep the old mark.

No two runs share an \`updated_at\`. A run that changes while you read the pages gets a later one than your new mark, so the next round brings
it. Webhooks tell you sooner, but an event can be lost. This way you miss no run. If a mark is later than your own clock, the cell's clock was once
ahead: take the latest \`updated_at\` that is not in the future.

### Find what failed

A run can fail, and a part can fail. These are two different things.

- **The run failed**: it stopped early, and nobody knows whether the part is good. \`GET /runs?status=failed\`; \`error_message\` says why.
- **The part failed**: the run is \`completed\`, and at least one check failed. \`GET /runs?status=completed&quality_status=failed\`;
  \`GET /runs/{run_id}/quality-report\` shows every check, and with \`?checks=not_passed\` only those that did not pass.

\`quality_status\` is the outcome of the inspection: \`passed\`, \`failed\`, \`indeterminate\` (no check failed, but one could not be evaluated),
or null if there is no report: before the first check, for a run without checks, and for a run that failed or was cancelled. While a run goes on
it is the outcome so far. Defects never change it.

Spell filters as they are written here: a parameter that \`GET /runs\` does not know is ignored, and a status that no run has gives an empty list.

### Turn a frame into millimetres

The ids of a run's frames are in \`results.frame_ids\`. \`GET /sensor/frames/{frame_id}\` gives the \`geometry\` to compute with, and
\`GET /sensor/frames/{frame_id}/file.npy\` the raw heights, one row for each line. The description of \`file.npy\` has lines of Python that you can copy.
With API keys on the service, each request in them needs the header \`Authorization: Bearer <key>\` as well.

- z = raw * \`height.scale_mm\` + \`height.offset_mm\`. A raw value listed in \`height.invalid\`, or NaN, means no measurement.
- x = \`x_origin_mm\` + column * \`x_pitch_mm\`; y = \`y_origin_mm\` + line * \`y_pitch_mm\`; both count from 0.

The PLY files are in millimetres already. They hold the measured points in the order of the NPY, row by row. Pixel [line, column] of the PNG is
the value [line, column] of the NPY; the text chunks of the PNG say how to turn its samples into millimetres.

A defect's regions name the \`file\` that shows them. In \`GET /runs/{run_id}/files\` find the entry of that \`name\`: it has the \`frame_id\`.

### Download, resume, try again

- A format that is still being made is 404 with \`retryable\` true. Ask again after a second.
- To resume, send \`Range: bytes=<received>-\` and \`If-Range: <ETag>\`. 206 brings the rest; 200 brings another file, from its start; 416 means
  that you have all bytes already.
- Retention may remove the captures of old runs, never of a run that goes on. Their files are then 410, and stay listed in the run's files with
  \`deleted_at\`. Their frames have no formats any more (404, \`retryable\` false). The run itself, its report and its checks stay.
- You may keep a connection for 5 s until the next request: answers say so in the header \`Keep-Alive\`. The service waits some seconds longer.

### Times, lengths, ids

Times are UTC with six decimals and Z, so they sort as text. Lengths are in millimetres; only events use the cell's display units, and name
them. Ids are UUIDv7: they sort by time of creation. A field that is not required may be absent or null: treat both
alike. Any release may add fields: ignore those that you do not know.

### Webhooks

\`POST /webhooks\` registers a receiver; the section Webhooks, after the operations, describes the events. In the receiver, check the
signature (one of the two headers is enough), answer 2xx quickly, and do the work afterwards. An event can come twice: ignore an \`event_id\` that you have seen. Events can
overtake each other: for each run keep the one with the newest \`updated_at\`, and ignore older ones. After an outage of the receiver, read on from your mark.

### Errors

Every error is an \`ErrorResponse\`: programs decide by \`code\` and \`retryable\`, people read \`message\`, and \`params\` names the wrong field
and what is allowed. Retry on 503 (after \`Retry-After\` seconds, if given), on 500, and on the 404 \`format_not_available\` if
\`retryable\` is true: the format is still being made. Any other error stays until you change the request. A method that
the path does not allow gets 405; the header \`Allow\` lists the allowed ones. Quote the header \`X-Trace-ID\` when you report a fault: the service's log has it.

### Access

A service started with \`--api-keys\` requires \`Authorization: Bearer <key>\`. A key with the scope \`read\` may read; one with \`manage\` may
also register, change, delete, test and retry webhooks. Each operation says which scope it needs. Without \`--api-keys\` no key is needed.
`;

/** The groups of operations, in the order in which /docs shows them. */
export const TAGS = [
  { name: "runs", description: "Programs executed against parts, and what they found." },
  { name: "live", description: "What changes, told to clients that stay connected." },
  { name: "programs", description: "Inspection definitions, made of steps." },
  { name: "statistics", description: "How a program's checks are doing, and the checks themselves for other tools." },
  { name: "files", description: "Files of runs: uploaded ones, and those made from captures." },
  { name: "frames", description: "Captures of the sensors, as raw data, point clouds and pictures." },
  { name: "webhooks", description: "Receivers of events, and the deliveries to them." },
  { name: "system", description: "The service itself." },
] as const;
