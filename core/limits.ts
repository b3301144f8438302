/** The limits of the interface and of the cell link, and the bounds of memory that belong to them, with reasons. Other bounds are beside what they bound. */
const KIB = 1024;
const MIB = 1024 * KIB;

export const LIMITS = {
  /** Paging. */
  runsPage: { default: 50, minimum: 1, maximum: 1000 },
  programsPage: { default: 100, minimum: 1, maximum: 1000 },
  programRunsPage: { default: 100, minimum: 1, maximum: 1000 },
  deliveriesPage: { default: 50, minimum: 1, maximum: 200 },
  /** Points of a frame's overview: a screen has about 2 million pixels, and 4 million points are 16 MB. */
  overviewPoints: { default: 1_000_000, minimum: 10_000, maximum: 4_000_000 },
  /**
   * Different names of checks in a program's statistics, as many as a run may have; and as many again of defects with
   * their severities. An answer can be shown and compared with so many; more mean that names hold serial numbers or times.
   */
  statisticsNames: 10_000,
  /** Trend buckets of one check, and of all checks of an answer together: some 20 MB of JSON. */
  trendBuckets: 200,
  allTrendBuckets: 100_000,
  /** Deliveries carry their payloads. A page ends before it would be larger than this, but it has at least one delivery. */
  deliveriesPageBytes: 32 * MIB,

  httpBodyBytes: 64 * KIB,
  /** How long the answer to an HTTP request may take to begin. An inline webhook attempt is shorter. Common clients and proxies wait longer. */
  requestDeadlineMs: 30_000,

  /**
   * Clients that follow changes at a time, if `--live-streams` does not say otherwise. Each needs a connection. A page of the console needs one, so
   * this is enough for all screens of a factory.
   */
  liveStreams: 512,
  /** A message from the client of a WebSocket. Clients have nothing to send. */
  liveMessageBytes: KIB,
  /**
   * Large documents that are being sent to WebSockets: 256 KiB for each of 512 clients. A document counts once, however many clients share it. Above
   * this limit, the connections that still get the oldest document are closed. These clients may come again for the newest one.
   */
  liveSentBytes: 128 * MIB,

  /** MessagePack body and payload of a cell-link frame (workers/cell-link/README.md). */
  linkBodyBytes: MIB,
  linkPayloadBytes: 64 * MIB,
  /**
   * Connections at a time; a cell has a few dozen producers. Each may hold one partial body in memory. Connections that have not said hello
   * (over TCP: not shown the token) are counted apart as pending, and close after `linkHelloTimeoutMs`.
   */
  linkConnections: { socket: { producers: 256, pending: 64 }, tcp: { producers: 128, pending: 32 } },
  /** An address may send `free` wrong tokens within `spanMs`. After them its connections are read with a delay. Each span logs at most one line. */
  linkWrongTokens: { free: 10, spanMs: 10_000, addresses: 1_024 },
  /**
   * Uncommitted bytes of one connection before its socket is paused. A single larger message is still read whole. At
   * 102 MB/s so many bytes wait during a sync of 300 ms.
   */
  linkConnectionPendingBytes: 32 * MIB,
  /** The same for all connections together: several heads can send side by side, and memory stays bounded. */
  linkPendingBytes: 96 * MIB,
  /**
   * Large payloads being read, in all connections together: two of the largest. One half is for the oldest, which gets all of its room. The others
   * share the second half. Each gets room for twice the bytes that have come of it. Up to `linkUnclaimedPayloadBytes` a payload needs no such room.
   * So small ones never wait for large ones, and a producer that sends no more than that holds up nobody. Each connection reads at most one.
   */
  linkClaimedPayloadBytes: 128 * MIB,
  linkUnclaimedPayloadBytes: MIB,
  /** While others wait for room, a payload must go on at least at this rate after `graceSeconds`, or its connection is closed. */
  linkSlowPayload: { graceSeconds: 1, bytesPerSecond: 256 * KIB },
  /** Memory that a message needs beside its own bytes while it waits for its commit. */
  linkMessageOverheadBytes: 512,
  /** Answers that a producer has not read. Beyond this its own socket is not read either. */
  linkUnreadAnswerBytes: MIB,
  /** A connection must say hello within `linkHelloTimeoutMs`, and then send something every `linkSilenceTimeoutMs` (workers/cell-link/README.md). */
  linkHelloTimeoutMs: 5_000,
  linkSilenceTimeoutMs: 60_000,

  /** Names and short texts: long enough for any real one, short enough for a table row and a log line. */
  nameCharacters: 255,
  serialNumberCharacters: 255,
  contentTypeCharacters: 255,
  producerCharacters: 64,
  /** Messages for people. An exception with its stack fits. */
  messageCharacters: 16 * KIB,
  traceIdCharacters: 128,

  /** A program with more steps is a mistake of the tool that wrote it. Every run's document carries all the steps. */
  stepsPerProgram: 1_000,
  runConfigsPerProgram: 1_000,
  robotsPerProgram: 64,

  /** Depth of a free-form value, so that readers can recurse safely. */
  jsonDepth: 32,

  /**
   * A run's document as MessagePack. It becomes one record when the run ends, and one JSON answer: this keeps the record under the log's
   * limit, and the answer within what a client expects to parse.
   */
  runDocumentBytes: 16 * MIB,
  /** List entries carry the run's metadata. A page of 1,000 entries stays under 64 MiB of MessagePack. */
  runMetadataBytes: 64 * KIB,
  framesPerRun: 1_000,
  /** Each batch of a frame and each append of a series is an extent in the run's document. */
  batchesPerFrame: 20_000,
  appendsPerSeries: 20_000,
  eventsPerRun: 10_000,
  checksPerRun: 10_000,
  defectsPerRun: 10_000,
  filesPerRun: 1_000,
  jobsPerRun: 1_000,

  /** Points of a line: 4 times the widest head on the market. Lines of a frame: a minute at 4,000 lines a second. */
  frameWidth: 16_384,
  frameLines: 262_144,
  /** Twice the channels of the largest multi-channel controller. */
  channelsPerSeries: 64,
  invalidCodes: 64,

  /** The recorder and the front both hold the runs that have not ended in memory. */
  activeRuns: 10_000,
  /** The documents of these runs together, so that a few huge ones cannot fill the memory of both threads. */
  activeRunBytes: 256 * MIB,
  /** Documents of ended runs that the recorder holds while their captures are processed. Beyond it captures wait, as they do for disk space. */
  processedRunBytes: 64 * MIB,
  programs: 100_000,
  /** The documents of all programs together: some 10,000 of average size. Both threads hold them in memory, and one list may show them all. */
  programBytes: 64 * MIB,
  components: 1_000,

  /** Refusals stored for one producer, to answer a resend again (workers/cell-link/README.md). */
  refusalsPerProducer: 1_024,
  /** Stored refusals of all producers together, about 40,000; beyond it the oldest go. Every segment's opening state holds them. */
  refusalBytes: 16 * MIB,
  /** Longest text in a refusal. A value or path from the message can be a megabyte and is cut to this. */
  refusalTextCharacters: 1_000,
  producers: 10_000,
  /** When there is no room for a new producer's name, one that has stored nothing for so long is forgotten. */
  producerUnusedDays: 90,
  /**
   * Instances of one producer whose last sequence number is remembered (workers/cell-link/README.md). Each start of a producer makes a new one, so
   * these are years of starts. One that comes back after so many others counts as new, and sends again whatever was not answered.
   */
  instancesPerProducer: 1_024,
  /**
   * Instances of all producers together: 16 of each of `producers`. Beyond it the producer with the most loses its oldest. Every segment's opening
   * state holds them, at 50 bytes each. With everything else in it, the opening state stays far below the 32 MiB of a record.
   */
  instances: 160_000,

  /** Each webhook may have a connection of its own, so that no receiver waits for another. */
  webhooks: 1_000,
  webhookUrlCharacters: 2_048,
  /** Four times the longest secret that other services give out. */
  webhookSecretCharacters: 512,
  /** How long two secrets of a webhook sign side by side: at most a week, so that an old secret does not stay for good. */
  secretOverlapSeconds: { minimum: 0, maximum: 604_800, default: 86_400 },
  /** Ranges of a webhook's settings. */
  deliveryTimeoutSeconds: { minimum: 1, maximum: 300 },
  retryBackoffSeconds: { minimum: 0, maximum: 30 },
  maxRetries: { minimum: 0, maximum: 10 },
  /** All attempts of one delivery. */
  dispatchWindowMs: 10_000,
  /**
   * Tests and manual retries of one receiver that clients wait for, with those under way. Each waits at most
   * `inlineWaitMs` to begin: a later one could not finish its window and be recorded before `requestDeadlineMs`.
   */
  inlineOfReceiver: 64,
  inlineWaitMs: 18_000,
  /** Deliveries of one resend: months of events to one receiver. Its record takes 33 bytes for each. */
  resendDeliveries: 250_000,
  resendPerSecond: { minimum: 1, maximum: 1_000, default: 20 },
  /** How much is kept of a receiver's answer: of its body, and of its headers. */
  answerBodyBytes: 16 * KIB,
  answerHeaderBytes: 16 * KIB,
  /** An answer with more header bytes counts as no answer. No server sends so many. */
  answerHeaderMostBytes: 256 * KIB,
  /** The latest attempts of a delivery that are kept. There are at most 11 automatic ones, and any number of manual ones. */
  attemptsPerDelivery: 32,
  /** Bytes in memory of events whose deliveries wait: thousands of events. Others are read from the store in their turn. */
  keptPayloadBytes: 64 * MIB,
  /** An event is in one record with the run's document. An event that would be larger has empty lists, and says so. */
  eventPayloadBytes: 12 * MIB,
} as const;
