import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import t, { type Test } from "tap";
import { LIMITS } from "../../../core/limits.js";
import { MESSAGE_REFUSAL_CODES } from "../../../core/link/refusal.js";
import { ACCEPTED_IN } from "../../../core/run/decide-run.js";
import { BufferPool } from "../../../workers/buffer-pool.js";
import { encodeFrame, FrameParser, type FrameToSend } from "../../../workers/cell-link/frame-codec.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";
import { MarkdownPage, tableRows } from "../../helpers/documents/markdown-page.js";
import { describedObjects, figure, tableOf } from "../../helpers/link/message-tables.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const PAGE = new MarkdownPage("workers/cell-link/README.md");
const MESSAGES = new MarkdownPage("workers/cell-link/MESSAGES.md");
const SESSION = new MarkdownPage("workers/cell-link/SESSION.md");
const TABLE = /^\| field [^\n]*\n(?:\|[^\n]*\n?)*\|/m;

t.test("each message and each shape has its section, with a table of its fields as the schema says", async (t) => {
  const objects = describedObjects();
  t.same(
    MESSAGES.headings(3)
      .filter((name) => /^[a-z]/.test(name))
      .sort(),
    [...objects.keys()].sort(),
  );
  for (const [name, schema] of objects) {
    const heading = `### \`${name}\``;
    const rows = tableRows(MESSAGES.section(heading));
    const meanings = new Map(rows.map(([field = "", , , meaning = ""]) => [field.replaceAll("`", ""), meaning]));
    MESSAGES.holds(t, heading, TABLE, tableOf(name, schema, meanings));
  }
  const stepTypes = objects.get("step")?.properties?.type?.enum as string[];
  const [, named = ""] = /^Types of steps: (.*?)\.$/ms.exec(MESSAGES.section("### `step`")) ?? [];
  t.same(
    [...named.matchAll(/`(\w+)`/g)].map(([, type]) => type),
    stepTypes,
  );
});

t.test("what may follow what", async (t) => {
  const statuses = ["pending", "running", "finalizing"];
  const rows = Object.entries(ACCEPTED_IN).map(([type, accepted]) => {
    const cells = statuses.map((status) => ((accepted as readonly string[]).includes(status) ? "yes" : "no"));
    return `| \`${type}\` | ${cells.join(" | ")} |`;
  });
  const head = ["| message | pending | running | finalizing |", "|---|---|---|---|"];
  PAGE.holds(t, "## What may follow what", /^\| message [^\n]*\n(?:\|[^\n]*\n?)*\|/m, [...head, ...rows].join("\n"));
});

/** Bounds that a producer meets. The others are about the service's memory. */
const BOUNDS: readonly [what: string, most: number | string, code: string][] = [
  ["body of a link frame", "1 MiB", "bad_frame"],
  ["payload of a frame", "64 MiB", "bad_frame"],
  ["runs that have not ended", LIMITS.activeRuns, "too_large"],
  ["documents of all runs that have not ended", "256 MiB", "too_large"],
  ["document of a run: all of it but captures and files", "16 MiB", "too_large"],
  ["metadata of a run", "64 KiB", "too_large"],
  ["steps of a run", LIMITS.stepsPerProgram, "invalid_message"],
  ["captured frames of a run", LIMITS.framesPerRun, "too_large"],
  ["batches of lines of a frame", LIMITS.batchesPerFrame, "too_large"],
  ["points of a line", LIMITS.frameWidth, "invalid_message"],
  ["lines of a frame", LIMITS.frameLines, "too_large"],
  ["appends of a series", LIMITS.appendsPerSeries, "too_large"],
  ["checks of a run", LIMITS.checksPerRun, "too_large"],
  ["defects of a run", LIMITS.defectsPerRun, "too_large"],
  ["lines of a run's event log", LIMITS.eventsPerRun, "too_large"],
  ["files of a run", LIMITS.filesPerRun, "too_large"],
  ["jobs of a run", LIMITS.jobsPerRun, "too_large"],
  ["programs", LIMITS.programs, "too_large"],
  ["documents of all programs", "64 MiB", "too_large"],
  ["components", LIMITS.components, "too_large"],
];

t.test("bounds, refusals and figures are the code's", async (t) => {
  const most = (value: number | string) => (typeof value === "number" ? figure(value) : value);
  const rows = BOUNDS.map(([what, value, code]) => `| ${what} | ${most(value)} | \`${code}\` |`);
  const expected = ["| bound | at most | code |", "|---|---|---|", ...rows].join("\n");
  PAGE.holds(t, "## Bounds", /^\| bound [^\n]*\n(?:\|[^\n]*\n?)*\|/m, expected);
  const MIB = 1024 * 1024;
  t.same(
    [
      LIMITS.linkBodyBytes,
      LIMITS.linkPayloadBytes,
      LIMITS.activeRunBytes,
      LIMITS.runDocumentBytes,
      LIMITS.programBytes,
    ],
    [MIB, 64 * MIB, 256 * MIB, 16 * MIB, 64 * MIB],
  );
  t.equal(LIMITS.runMetadataBytes, 64 * 1024);
  const refused = PAGE.section("### Refusals");
  const [messages, connections] = refused.split("**A refused connection.**") as [string, string];
  t.same(
    tableRows(messages).map(([code]) => code),
    MESSAGE_REFUSAL_CODES.map((code) => `\`${code}\``),
  );
  t.same(
    tableRows(connections).map(([code]) => code?.replaceAll("`", "")),
    ["bad_frame", "invalid_message", "unauthorized", "unavailable", "sequence_gap", "sequence_taken"],
  );
});

const PROGRAM = "01900000-0000-7000-8000-000000000001";
const RUN = "019b0a5e-7c00-7000-8000-000000000001";
const HELLO = { protocol: 1, producer: "press-7", instance: "7d0e2f41-6b1c-4c58-9a55-0f2d7c4b8e13" };

/** What the producer of the page's session sends; null: its connection breaks, and it connects anew. */
const SENT: readonly (FrameToSend | null)[] = [
  { kind: "hello", sequence: 0, body: HELLO },
  message(1, {
    type: "program.put",
    program: { id: PROGRAM, name: "Seam", status: "active", steps: [{ type: "wait" }] },
  }),
  message(2, { type: "run.create", id: RUN, program_id: PROGRAM, serial_number: "SN-1" }),
  message(3, { type: "run.start", id: RUN }),
  message(4, { type: "check.add", run_id: RUN, check: { name: "gap", status: "passed", value: 0.5 } }),
  message(5, { type: "file.put", run_id: RUN, name: "note.txt", content_type: "text/plain" }, Buffer.from("ok\n")),
  message(6, { type: "run.start", id: RUN }),
  { kind: "ping", sequence: 1 },
  message(7, { type: "run.finish", id: RUN }),
  null,
  { kind: "hello", sequence: 0, body: HELLO },
  message(6, { type: "run.start", id: RUN }),
  message(9, { type: "run.cancel", id: RUN }),
];

function message(sequence: number, body: object, payload?: Uint8Array): FrameToSend {
  return { kind: "message", sequence, body, ...(payload && { payload }) };
}

t.test("the session in hex is what goes over a real socket, byte for byte", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const said: string[] = [];
  let line = await Line.connect(t, recorder.address.path);
  for (const frame of SENT) {
    if (frame === null) {
      line.socket.destroy();
      line = await Line.connect(t, recorder.address.path);
      said.push("the connection breaks; the producer connects anew", "");
      continue;
    }
    const bytes = Buffer.concat(encodeFrame(frame));
    const answer = await line.ask(bytes);
    said.push(...shown("→", bytes), ...shown("←", answer), "");
  }
  t.same(await line.rest(), Buffer.alloc(0), "and the connection is closed");
  const expected = `\`\`\`text\n${said.join("\n").trimEnd()}\n\`\`\``;
  SESSION.holds(t, "## The session", /^```text\n.*?^```$/ms, expected);
});

/** A connection that takes one answer, a whole frame, for each frame that it sends. */
class Line {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  #isEnded = false;
  #onChange = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#onChange();
    });
    socket.on("end", () => {
      this.#isEnded = true;
      this.#onChange();
    });
  }

  static async connect(t: Test, path: string): Promise<Line> {
    const socket = connect(path);
    t.teardown(() => socket.destroy());
    await once(socket, "connect");
    return new Line(socket);
  }

  async ask(bytes: Buffer): Promise<Buffer> {
    this.socket.write(bytes);
    // What the service sends has no payload.
    const length = () => 24 + 8 * Math.ceil(this.#received.readUInt32LE(16) / 8);
    while (this.#received.length < 24 || this.#received.length < length()) {
      if (this.#isEnded) throw new Error("closed before the answer");
      await this.#changed();
    }
    const answer = this.#received.subarray(0, length());
    this.#received = this.#received.subarray(answer.length);
    return answer;
  }

  async rest(): Promise<Buffer> {
    while (!this.#isEnded) await this.#changed();
    return this.#received;
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#onChange = resolve;
    });
  }
}

/** Kind, sequence number and body, and the bytes, 32 in a line. */
function shown(arrow: string, bytes: Buffer): string[] {
  const lines: string[] = [];
  const parser = new FrameParser({
    buffers: new BufferPool(0),
    onFrame({ kind, sequence, body, payload }) {
      const more = payload.length === 0 ? "" : `, payload ${JSON.stringify(Buffer.from(payload).toString())}`;
      lines.push(`${arrow} ${kind} ${sequence}${more}`);
      const decoded = decodeBody(body);
      if (body.length === 0) return;
      if (!decoded.ok) throw new Error(decoded.fault.message);
      let text = " ";
      for (const part of JSON.stringify(decoded.body).split(/(?<=,)(?=")/)) {
        if (text.length + part.length > 110) {
          lines.push(text);
          text = " ";
        }
        text += text === " " ? ` ${part}` : part;
      }
      lines.push(text);
    },
  });
  const fault = parser.push(bytes);
  if (fault !== undefined) throw new Error(fault.message);
  for (let at = 0; at < bytes.length; at += 32) {
    lines.push(`  ${[...bytes.subarray(at, at + 32)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ")}`);
  }
  return lines;
}

t.test("the program of the page records a run", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const [program = ""] = PAGE.blocks("## A producer in TypeScript", "js");
  const code = program.replace("data/cell.sock", recorder.address.path);
  t.not(code, program);
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: "inherit" });
  t.same(await once(child, "close"), [0, null]);
  const [run] = [...recorder.runs.values()];
  t.match(run, { serialNumber: "SN-1" });
  t.match(run?.checks[0], { name: "gap", value: 0.42 });
});
