import type { Socket } from "node:net";
import { LIMITS } from "../../core/limits.js";
import type { Refusal } from "../../core/link/refusal.js";
import { boundedRefusal } from "./bounds/bounded-refusal.js";
import type { LinkBudget, PayloadClaim, Turn } from "./bounds/link-budget.js";
import type { Transport } from "./bounds/link-places.js";
import type { PayloadBuffers } from "./bounds/payload-buffers.js";
import {
  type BadFrame,
  badFrame,
  encodeFrame,
  type Frame,
  FrameParser,
  type FrameToSend,
  PROTOCOL_VERSION,
} from "./frame-codec.js";
import { readHello } from "./hello.js";
import type { MessageIntake, ProducerProgress } from "./message-intake.js";
import { TakenMessage } from "./taken-message.js";

/** What a session needs of the server that accepted it. */
export interface SessionHost {
  readonly intake: MessageIntake;
  readonly buffers: PayloadBuffers;
  readonly budget: LinkBudget;
  /** False while messages with a payload must wait. */
  mayTakePayloads(): boolean;
  /** Whether one more that says it is this producer can be kept. */
  hasPlace(session: LinkSession, name: string): boolean;
  /** A session has said who it is: an older one of the same name is closed by now. */
  entered(session: LinkSession, producer: ProducerProgress): void;
  /** The session has something to send at the end of this group of commits. */
  hasAnswers(session: LinkSession): void;
  ended(session: LinkSession): void;
  wrongToken(address: string): void;
  /** An error that is the service's own. */
  report(error: unknown, producer: string | null): void;
}

/**
 * - `hello`: nothing was said yet.
 * - `welcome`: what an older connection of the name had sent is not committed yet.
 * - `open`: messages come and go.
 * - `closing`: the last frame was written; what still comes is not read.
 */
type Phase = "hello" | "welcome" | "open" | "closing" | "closed";

type PauseReason =
  | "welcome"
  | "unread answers"
  | "own messages"
  | "all messages"
  | "payload room"
  | "disk room"
  | "token"
  | "service";

/** A connection from where wrong tokens come is read after so many: between one second and two. */
const SLOWED_TICKS = 2;
/** After its last frame a connection has so long to take it and end. */
const CLOSING_TICKS = 2;

/**
 * One connection of a producer (cell-link.md, Session). Every message is decided as its last byte is read; several are in
 * flight until their records are committed.
 */
export class LinkSession {
  readonly #socket: Socket;
  readonly #host: SessionHost;
  readonly #token: string | null;
  readonly #address: string;
  readonly #parser: FrameParser;
  #phase: Phase = "hello";
  #producer: ProducerProgress | undefined;
  /** The queue that its messages come from. Null: it named none, and what it sends is of this connection alone. */
  #instance: string | null = null;
  /** What must be committed before the welcome, which names it as `committed`. */
  #welcomeAt = 0;
  /** The welcome's `yours`: the last number that came from this instance on an earlier connection. */
  #yours = 0;
  /** Highest number that an ack can cover and that none has. */
  #ackDue = 0;
  /** Bytes of messages taken from this connection and not committed. */
  #pendingBytes = 0;
  /** Of the payload that is being read. */
  #claim: PayloadClaim | undefined;
  /** Waits for its turn while the link as a whole is full. */
  #turn: Turn | undefined;
  #pendingCount = 0;
  /** The producer has ended its side: what it sent is still answered, then the connection ends. */
  #peerEnded = false;
  /** A payload began before hello. */
  #payloadBeforeHello = false;
  readonly #pauses = new Set<PauseReason>();
  /** One for all of the session's messages. */
  readonly #onCommitted = (message: TakenMessage, refusal: Refusal | null) => this.#committed(message, refusal);
  // Time is counted in the server's ticks: a tick that comes late, because the service was busy, counts once.
  #ticks = 0;
  #silentTicks = 0;
  #claimTicks = 0;
  #unreadTicks = 0;

  /** `token`: what it must show, over TCP; null over the Unix socket. `address`: where it comes from. */
  constructor(socket: Socket, host: SessionHost, { token, address }: { token: string | null; address: string }) {
    this.#socket = socket;
    this.#host = host;
    this.#token = token;
    this.#address = address;
    this.#parser = new FrameParser({
      onFrame: (frame) => this.#receive(frame),
      buffers: host.buffers,
      onPayloadAnnounced: () => {
        if (this.#phase === "hello") this.#payloadBeforeHello = true;
      },
      mayTakePayload: (lengthBytes, stage) => this.#mayTakePayload(lengthBytes, stage),
    });
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("drain", () => {
      this.#unreadTicks = 0;
      this.#resume("unread answers");
    });
    socket.on("end", () => {
      this.#peerEnded = true;
      this.flush();
    });
    socket.on("error", () => this.close());
    socket.on("close", () => this.#closed());
  }

  /** The queue that it serves; null where it named none. */
  get instance(): string | null {
    return this.#instance;
  }

  /** Undefined until it said who it is. */
  get producer(): ProducerProgress | undefined {
    return this.#producer;
  }

  get transport(): Transport {
    return this.#token === null ? "socket" : "tcp";
  }

  /** What comes is looked at after a moment only: it comes from where wrong tokens came. */
  readLater(): void {
    this.#pause("token");
  }

  /** The service as a whole stops reading, or goes on. */
  setServicePaused(paused: boolean): void {
    if (paused) this.#pause("service");
    else this.#resume("service");
  }

  /** Goes on with the payload that was held back, if one was and it may. */
  takeHeldPayload(): void {
    if (!this.#parser.isHeld || this.#phase === "closing" || this.#phase === "closed") return;
    this.#parse(() => this.#parser.proceed());
    if (this.#parser.isHeld) return;
    this.#resume("payload room");
    this.#resume("disk room");
  }

  /** Everything up to `producer.committed` is committed: sends the welcome if it waited for that, and what is due. */
  flush(): void {
    if (this.#phase === "welcome") {
      if ((this.#producer?.committed ?? 0) >= this.#welcomeAt) this.#welcome();
      else this.#host.hasAnswers(this);
    }
    if (this.#ackDue > 0 && this.#phase === "open") {
      this.#send({ kind: "ack", sequence: this.#ackDue });
      this.#ackDue = 0;
    }
    if (this.#peerEnded && this.#pendingCount === 0 && this.#phase !== "welcome") this.#endAfterWrites();
  }

  /** Refuses the connection as such and closes it. */
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

  /** Ends the connection after what was written; for the end of the service. */
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
    // To the end of what the producer had sent already: an unread rest would reset the connection, and the last frame with it.
    this.#socket.resume();
  }

  /** Called once a second. */
  tick(): void {
    // A connection that the service does not read cannot say hello.
    if (this.#phase !== "hello" || !this.#pauses.has("service")) this.#ticks++;
    if (this.#phase === "closing") {
      if (this.#ticks >= CLOSING_TICKS) this.#socket.destroy();
      return;
    }
    if (this.#ticks >= SLOWED_TICKS) this.#resume("token");
    if (this.#phase === "hello" && this.#ticks * 1000 >= LIMITS.linkHelloTimeoutMs) {
      this.close();
      return;
    }
    // Silence counts only while the service listens.
    if (this.#pauses.size === 0) this.#silentTicks++;
    if (this.#silentTicks * 1000 >= LIMITS.linkSilenceTimeoutMs) {
      this.close();
      return;
    }
    if (this.#pauses.has("unread answers") && ++this.#unreadTicks * 1000 >= LIMITS.linkSilenceTimeoutMs) {
      this.close();
      return;
    }
    if (this.#claim?.granted === true && this.#pauses.size === 0) this.#claimTicks++;
    // A payload that trickles in holds its memory; that is harmless until others wait for it.
    if (this.#isPayloadSlow() && this.#host.budget.hasWaitingClaims) this.close();
  }

  #isPayloadSlow(): boolean {
    const countedMs = this.#claimTicks * 1000 - LIMITS.linkSlowPayload.graceMs;
    return this.#parser.payloadFilledBytes < (countedMs / 1000) * LIMITS.linkSlowPayload.bytesPerSecond;
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
      // Above all: no memory for what has come. It costs this connection, and nothing else.
      this.#host.report(error, this.#producer?.name ?? null);
      this.refuseConnection(unavailable("the service has no memory for a message"));
      return;
    }
    if (fault !== undefined) this.refuseConnection(fault);
    else if (this.#payloadBeforeHello) this.refuseConnection(badFrame("kind", "message", "hello first"));
    this.flush();
    this.#limitPending();
  }

  #receive(frame: Frame): void {
    if (this.#phase === "hello") {
      if (frame.kind === "hello") this.#receiveHello(frame.body);
      else this.refuseConnection(badFrame("kind", frame.kind, "hello first"));
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
      this.refuseConnection(unavailable("the service has no place for one more producer's connection"));
      return;
    }
    const producer = intake.unavailable === null ? intake.producer(hello.producer) : undefined;
    if (producer === undefined) {
      this.refuseConnection(
        unavailable(
          intake.unavailable ??
            "the service knows too many producer names already: `inspection-service producers` lists and removes them",
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
      this.#pause("welcome");
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
    this.#resume("welcome");
  }

  #receiveMessage(frame: Frame): void {
    const { intake, budget, buffers } = this.#host;
    const producer = this.#producer as ProducerProgress;
    const { sequence, payload } = frame;
    const claim = this.#claim;
    this.#claim = undefined;
    if (claim !== undefined) budget.end(claim);
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
        `another instance of ${producer.name} sent this one: the next is`,
      );
    } else if (sequence <= producer.committed) {
      this.#answerAgain(producer, sequence);
    }
    // Else it is on its way: its answer comes with its commit.
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
    const { intake, budget } = this.#host;
    const { body, payload } = frame;
    const bytes = body.length + payload.length + LIMITS.linkMessageOverheadBytes;
    this.#pendingBytes += bytes;
    this.#pendingCount++;
    budget.add(bytes);
    const message = new TakenMessage(producer, frame, this.#instance, bytes, this.#onCommitted);
    try {
      intake.take(message);
    } catch (error) {
      this.#release(message);
      this.#host.report(error, producer.name);
      this.refuseConnection(unavailable("the service could not take a message"));
    }
  }

  #committed(message: TakenMessage, refusal: Refusal | null): void {
    this.#release(message);
    if (this.#phase === "closing" || this.#phase === "closed") return;
    const { sequence } = message;
    if (refusal !== null) this.#send({ kind: "refuse", sequence, body: refusal });
    else this.#ackDue = Math.max(this.#ackDue, sequence);
    if (this.#pendingBytes <= LIMITS.linkConnectionPendingBytes / 2) this.#resume("own messages");
    this.#host.hasAnswers(this);
  }

  #release({ bytes, payload }: TakenMessage): void {
    const { budget, buffers } = this.#host;
    this.#pendingBytes -= bytes;
    this.#pendingCount--;
    buffers.release(payload);
    budget.release(bytes);
  }

  #mayTakePayload(lengthBytes: number, stage: "begin" | "deliver"): boolean {
    const { budget } = this.#host;
    // Only a connection that said who it is may make the service hold bytes.
    if (this.#phase === "hello" || !this.#host.mayTakePayloads()) return false;
    if (stage === "deliver" || lengthBytes <= LIMITS.linkUnclaimedPayloadBytes) return true;
    this.#claimTicks = 0;
    this.#claim ??= budget.claim(lengthBytes, () => this.takeHeldPayload());
    return this.#claim.granted;
  }

  /** After each chunk: memory is bounded to what is pending plus one chunk. */
  #limitPending(): void {
    const { budget } = this.#host;
    if (this.#phase === "closing" || this.#phase === "closed") return;
    // A message over the limit is let in while nothing else is pending: the payload being read is not among these.
    if (this.#pendingBytes > LIMITS.linkConnectionPendingBytes) this.#pause("own messages");
    if (this.#parser.isHeld) this.#pause(this.#claim?.granted === false ? "payload room" : "disk room");
    if (budget.isFull && this.#turn === undefined) {
      this.#pause("all messages");
      this.#turn = budget.waitForTurn(() => {
        this.#turn = undefined;
        this.#resume("all messages");
      });
    }
  }

  #send(frame: FrameToSend): void {
    for (const part of encodeFrame(frame)) this.#socket.write(part);
    if (this.#socket.writableLength > LIMITS.linkUnreadAnswerBytes) this.#pause("unread answers");
  }

  #pause(reason: PauseReason): void {
    if (this.#phase === "closing" || this.#phase === "closed") return;
    this.#pauses.add(reason);
    this.#socket.pause();
  }

  #resume(reason: PauseReason): void {
    if (!this.#pauses.delete(reason) || this.#pauses.size > 0) return;
    if (this.#phase === "closing" || this.#phase === "closed") return;
    this.#silentTicks = 0;
    this.#socket.resume();
  }

  /** What was read in part has no effect. */
  #stopReading(): void {
    const { budget } = this.#host;
    this.#parser.close();
    if (this.#claim !== undefined) budget.end(this.#claim);
    if (this.#turn !== undefined) budget.cancelTurn(this.#turn);
    this.#claim = undefined;
    this.#turn = undefined;
    this.#pauses.clear();
  }

  #closed(): void {
    if (this.#phase !== "closed" && this.#phase !== "closing") this.#stopReading();
    this.#phase = "closed";
    this.#host.ended(this);
  }
}

export function unavailable(message: string): Refusal<"unavailable"> {
  return { code: "unavailable", message, params: {} };
}
