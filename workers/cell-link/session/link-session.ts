import type { Socket } from "node:net";
import { LIMITS } from "../../../core/limits.js";
import type { Refusal } from "../../../core/link/refusal.js";
import { boundedRefusal, unavailable } from "../bounds/bounded-refusal.js";
import type { Transport } from "../bounds/connection-limits.js";
import {
  type BadFrame,
  badFrame,
  encodeFrame,
  type Frame,
  FrameParser,
  type FrameToSend,
  PROTOCOL_VERSION,
} from "../frame-codec.js";
import type { ProducerProgress } from "../message-intake.js";
import { readHello } from "./hello.js";
import type { SessionHost, SessionPhase } from "./session-host.js";
import { SessionMemory } from "./session-memory.js";
import { SessionPauses } from "./session-pauses.js";
import { TakenMessage } from "./taken-message.js";

/** A connection from an address that sent wrong tokens is read after this many ticks: between one second and two. */
const SLOWED_TICKS = 2;
/** After its last frame a connection has this many ticks to take it and end. */
const CLOSING_TICKS = 2;

/**
 * One connection of a producer (workers/cell-link/README.md). A message is decided as soon as its last byte is read. Several are in flight
 * until their records are committed.
 */
export class LinkSession {
  readonly #socket: Socket;
  readonly #host: SessionHost<LinkSession>;
  readonly #token: string | null;
  readonly #address: string;
  readonly #parser: FrameParser;
  #phase: SessionPhase = "hello";
  #producer: ProducerProgress | undefined;
  /** The queue that its messages come from. Null: it named none, so its messages belong to this connection alone. */
  #instance: string | null = null;
  /** The sequence number that must be committed before the welcome, which names it as `committed`. */
  #welcomeAt = 0;
  /** The welcome's `yours`: the last sequence number that came from this instance on an earlier connection. */
  #yours = 0;
  /** Highest sequence number to acknowledge; 0 if no ack is due. */
  #ackDue = 0;
  /** The producer has ended its side. What it sent is still answered. Then the connection ends. */
  #peerEnded = false;
  /** A payload began before hello. */
  #payloadBeforeHello = false;
  readonly #pauses: SessionPauses;
  readonly #memory: SessionMemory;
  /** One function for all messages of the session. */
  readonly #onCommitted = (message: TakenMessage, refusal: Refusal | null) => this.#committed(message, refusal);
  // Time is counted in the server's ticks. So a tick that comes late, because the service was busy, counts only once.
  #ticks = 0;
  #silentTicks = 0;
  #unreadTicks = 0;

  /** @param options.token what it must show over TCP; null over the Unix socket */
  constructor(
    socket: Socket,
    host: SessionHost<LinkSession>,
    { token, address }: { token: string | null; address: string },
  ) {
    this.#socket = socket;
    this.#host = host;
    this.#token = token;
    this.#address = address;
    this.#pauses = new SessionPauses(socket, () => {
      this.#silentTicks = 0;
    });
    this.#memory = new SessionMemory({
      budget: host.budget,
      buffers: host.buffers,
      pauses: this.#pauses,
      onPayloadRoom: () => this.takeHeldPayload(),
    });
    this.#parser = new FrameParser({
      onFrame: (frame) => this.#receive(frame),
      buffers: host.buffers,
      onPayloadAnnounced: () => {
        if (this.#phase === "hello") this.#payloadBeforeHello = true;
      },
      payloadRoom: (lengthBytes, filledBytes) => this.#payloadRoom(lengthBytes, filledBytes),
      mayDeliverPayload: () => this.#mayTakePayload(),
    });
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("drain", () => {
      this.#unreadTicks = 0;
      this.#pauses.resume("unread answers");
    });
    socket.on("end", () => {
      this.#peerEnded = true;
      this.flush();
    });
    socket.on("error", () => this.close());
    socket.on("close", () => this.#closed());
  }

  /** The queue that this session serves; null if it named none. */
  get instance(): string | null {
    return this.#instance;
  }

  /** Undefined before its hello. */
  get producer(): ProducerProgress | undefined {
    return this.#producer;
  }

  get transport(): Transport {
    return this.#token === null ? "socket" : "tcp";
  }

  /** Waits before it reads: wrong tokens came from this address. */
  readLater(): void {
    this.#pauses.pause("token");
  }

  /** Stops reading, or goes on, because the service as a whole does. */
  setServicePaused(paused: boolean): void {
    if (paused) this.#pauses.pause("service");
    else this.#pauses.resume("service");
  }

  /** Goes on with a payload that was held back, if it may be taken now. */
  takeHeldPayload(): void {
    if (!this.#parser.isHeld || this.#phase === "closing" || this.#phase === "closed") return;
    this.#parse(() => this.#parser.proceed());
    if (this.#parser.isHeld) return;
    this.#pauses.resume("payload room");
    this.#pauses.resume("disk room");
  }

  /** Sends what commits have made due: the welcome, an ack, the end of the connection. */
  flush(): void {
    if (this.#phase === "welcome") {
      if ((this.#producer?.committed ?? 0) >= this.#welcomeAt) this.#welcome();
      else this.#host.hasAnswers(this);
    }
    if (this.#ackDue > 0 && this.#phase === "open") {
      this.#send({ kind: "ack", sequence: this.#ackDue });
      this.#ackDue = 0;
    }
    if (this.#peerEnded && this.#memory.pendingCount === 0 && this.#phase !== "welcome") this.#endAfterWrites();
  }

  /** Refuses the connection and closes it. */
  refuseConnection(refusal: Refusal<string>, sequence = 0): void {
    if (this.#phase === "closing" || this.#phase === "closed") return;
    this.flush();
    this.#send({ kind: "refuse", sequence, body: boundedRefusal(refusal) });
    this.#endAfterWrites();
  }

  close(): void {
    if (this.#phase === "closed") return;
    this.#phase = "closing";
    this.#stopReading();
    this.#socket.destroy();
  }

  /** Ends the connection after what was written. For a stop of the service. */
  end(): void {
    this.flush();
    this.#endAfterWrites();
  }

  #endAfterWrites(): void {
    if (this.#phase === "closing" || this.#phase === "closed") return;
    this.#phase = "closing";
    this.#ticks = 0;
    this.#stopReading();
    this.#socket.end();
    // Reads and discards what the producer has already sent. Unread bytes would reset the connection and lose the last frame.
    this.#socket.resume();
  }

  /** Called once a second. */
  tick(): void {
    // Its hello cannot arrive while the service does not read.
    if (this.#phase !== "hello" || !this.#pauses.has("service")) this.#ticks++;
    if (this.#phase === "closing") {
      if (this.#ticks >= CLOSING_TICKS) this.#socket.destroy();
      return;
    }
    if (this.#ticks >= SLOWED_TICKS) this.#pauses.resume("token");
    const isHelloLate = this.#phase === "hello" && this.#ticks * 1000 >= LIMITS.linkHelloTimeoutMs;
    // Silence counts only while the service listens.
    if (!this.#pauses.isPaused) this.#silentTicks++;
    if (isHelloLate || this.#silentTicks * 1000 >= LIMITS.linkSilenceTimeoutMs) {
      this.close();
      return;
    }
    if (this.#pauses.has("unread answers") && ++this.#unreadTicks * 1000 >= LIMITS.linkSilenceTimeoutMs) {
      this.close();
      return;
    }
    if (!this.#pauses.isPaused && this.#memory.isPayloadSlow(this.#parser.payloadFilledBytes)) this.close();
  }

  #read(chunk: Buffer): void {
    this.#silentTicks = 0;
    if (this.#phase === "closing" || this.#phase === "closed") return;
    this.#parse(() => this.#parser.push(chunk));
  }

  #parse(parse: () => BadFrame | undefined): void {
    let fault: BadFrame | undefined;
    try {
      fault = parse();
    } catch (error) {
      // Most likely there is no memory for the message. Only this connection ends.
      this.#host.report(error, this.#producer?.name ?? null);
      this.refuseConnection(unavailable("the service has no memory for a message"));
      return;
    }
    if (fault !== undefined) this.refuseConnection(fault);
    else if (this.#payloadBeforeHello)
      this.refuseConnection(badFrame("kind", "message", "hello, the first frame of a connection"));
    this.flush();
    if (this.#phase !== "closing" && this.#phase !== "closed") this.#memory.limit(this.#parser.isHeld);
  }

  #receive(frame: Frame): void {
    if (this.#phase === "hello") {
      if (frame.kind === "hello") this.#receiveHello(frame.body);
      else this.refuseConnection(badFrame("kind", frame.kind, "hello, the first frame of a connection"));
      return;
    }
    switch (frame.kind) {
      case "message":
        this.#receiveMessage(frame);
        return;
      case "ping":
        this.#send({ kind: "pong", sequence: frame.sequence });
        return;
      case "pong":
        return;
      default:
        this.refuseConnection(badFrame("kind", frame.kind, "message, ping or pong"));
    }
  }

  #receiveHello(body: Uint8Array): void {
    const hello = readHello(body, this.#token);
    if (!hello.ok) {
      if (hello.refusal.code === "unauthorized") this.#host.wrongToken(this.#address);
      this.refuseConnection(hello.refusal);
      return;
    }
    const { intake } = this.#host;
    if (intake.unavailable === null && !this.#host.hasPlace(this, hello.producer)) {
      this.refuseConnection(unavailable("the service has no room for another producer's connection"));
      return;
    }
    const producer = intake.unavailable === null ? intake.producer(hello.producer) : undefined;
    if (producer === undefined) {
      this.refuseConnection(
        unavailable(
          intake.unavailable ??
            `all ${LIMITS.producers} producer names are used: stop the service and remove one with \`inspection-service producers remove\``,
        ),
      );
      return;
    }
    this.#producer = producer;
    this.#instance = hello.instance;
    this.#yours = hello.instance === null ? 0 : (producer.instances.get(hello.instance) ?? 0);
    this.#welcomeAt = producer.taken;
    this.#phase = "welcome";
    this.#host.entered(this, producer);
    if (producer.committed >= this.#welcomeAt) {
      this.#welcome();
    } else {
      this.#pauses.pause("welcome");
      this.#host.hasAnswers(this);
    }
  }

  #welcome(): void {
    const { intake } = this.#host;
    const producer = this.#producer as ProducerProgress;
    this.#phase = "open";
    if (this.#yours > 0 && this.#yours < this.#welcomeAt) intake.alternated(producer);
    this.#send({
      kind: "welcome",
      sequence: 0,
      body: {
        protocol: PROTOCOL_VERSION,
        service_version: intake.serviceVersion,
        committed: this.#welcomeAt,
        yours: this.#yours,
        last_run_id: intake.lastRunId,
      },
    });
    this.#pauses.resume("welcome");
  }

  #receiveMessage(frame: Frame): void {
    const { intake, buffers } = this.#host;
    const producer = this.#producer as ProducerProgress;
    const { sequence, payload } = frame;
    this.#memory.endClaim();
    if (sequence > producer.taken && sequence === producer.taken + 1 && intake.unavailable === null) {
      this.#take(frame, producer);
      return;
    }
    buffers.release(payload);
    if (intake.unavailable !== null) {
      this.refuseConnection(unavailable(intake.unavailable));
    } else if (sequence === 0) {
      this.refuseConnection(badFrame("sequence", 0, "1 to 2^53 - 1 for message"));
    } else if (sequence > producer.taken) {
      this.#refuseSequence("sequence_gap", sequence, `the next sequence number of ${producer.name} is`);
    } else if (sequence > this.#yours && sequence <= this.#welcomeAt) {
      this.#refuseSequence(
        "sequence_taken",
        sequence,
        `another instance of ${producer.name} has used this sequence number: the next is`,
      );
    } else if (sequence <= producer.committed) {
      this.#answerAgain(producer, sequence);
    }
    // Otherwise it was taken and is not committed yet. Its commit brings the answer.
  }

  #refuseSequence(code: "sequence_gap" | "sequence_taken", sequence: number, said: string): void {
    const next = (this.#producer as ProducerProgress).taken + 1;
    const params = { path: "sequence", value: sequence, allowed: next };
    this.refuseConnection({ code, message: `${said} ${next}, not ${sequence}`, params }, sequence);
  }

  #answerAgain(producer: ProducerProgress, sequence: number): void {
    const stored = producer.refusals.get(sequence);
    if (stored === undefined) this.#ackDue = Math.max(this.#ackDue, sequence);
    else this.#send({ kind: "refuse", sequence, body: stored.refusal });
  }

  #take(frame: Frame, producer: ProducerProgress): void {
    const { intake } = this.#host;
    const bytes = this.#memory.take(frame);
    const message = new TakenMessage(producer, frame, this.#instance, bytes, this.#onCommitted);
    try {
      intake.take(message);
    } catch (error) {
      this.#memory.release(message);
      this.#host.report(error, producer.name);
      this.refuseConnection(unavailable("the service could not take a message"));
    }
  }

  #committed(message: TakenMessage, refusal: Refusal | null): void {
    this.#memory.release(message);
    if (this.#phase === "closing" || this.#phase === "closed") return;
    const { sequence } = message;
    if (refusal !== null) this.#send({ kind: "refuse", sequence, body: refusal });
    else this.#ackDue = Math.max(this.#ackDue, sequence);
    this.#memory.resumeIfDrained();
    this.#host.hasAnswers(this);
  }

  #mayTakePayload(): boolean {
    // The service holds no bytes for a connection that has not said hello.
    return this.#phase !== "hello" && this.#host.mayTakePayloads();
  }

  #payloadRoom(lengthBytes: number, filledBytes: number): number {
    return this.#mayTakePayload() ? this.#memory.payloadRoom(lengthBytes, filledBytes) : filledBytes;
  }

  #send(frame: FrameToSend): void {
    try {
      for (const part of encodeFrame(frame)) this.#socket.write(part);
    } catch (error) {
      // Most likely there is no memory for the frame. The next connection is told what was committed.
      this.#host.report(error, this.#producer?.name ?? null);
      this.close();
    }
    if (this.#socket.writableLength > LIMITS.linkUnreadAnswerBytes) this.#pauses.pause("unread answers");
  }

  /** What was read in part has no effect. */
  #stopReading(): void {
    this.#parser.close();
    this.#memory.stop();
    this.#pauses.end();
  }

  #closed(): void {
    if (this.#phase !== "closed" && this.#phase !== "closing") this.#stopReading();
    this.#phase = "closed";
    this.#host.ended(this);
  }
}
