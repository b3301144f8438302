/**
 * Every bound of the service with its reason. A thing without a bound here is bounded by one that is.
 */
const KIB = 1024;
const MIB = 1024 * KIB;

export const LIMITS = {
  /** Paging (interface.md, Limits). */
  runsPage: { default: 50, minimum: 1, maximum: 1000 },
  programsPage: { default: 100, minimum: 1, maximum: 1000 },
  programRunsPage: { default: 100, minimum: 1, maximum: 1000 },
  deliveriesPage: { default: 50, minimum: 1, maximum: 200 },
  /** Of a page of deliveries, which carry their payloads: a page that would be larger ends before, with one at least. */
  deliveriesPageBytes: 32 * MIB,

  /** Body of an HTTP request (decisions.md, Errors). */
  httpBodyBytes: 64 * KIB,
  /** Until the answer to an HTTP request begins: above an inline webhook attempt, below the patience of common clients and proxies. */
  requestDeadlineMs: 30_000,

  /** MessagePack body and payload of a cell-link frame (cell-link.md, Frame). */
  linkBodyBytes: MIB,
  linkPayloadBytes: 64 * MIB,
  /**
   * Connections at a time: a cell has some dozens of producers. Each may hold one partial body in memory. Those that have not said who they
   * are (over TCP: not shown the token) have places of their own, for `linkHelloTimeoutMs`.
   */
  linkConnections: { socket: { producers: 256, strangers: 64 }, tcp: { producers: 128, strangers: 32 } },
  /** Wrong tokens of an address within a span before its connections are read with a delay; each span has one line at most. */
  linkWrongTokens: { free: 10, spanMs: 10_000, addresses: 1_024 },
  /**
   * Bytes taken from one connection and not yet committed, before its socket is paused (a single larger message may come whole): at
   * 102 MB/s, what a sync of 300 ms leaves waiting. In all connections, so that heads side by side go on while memory stays bounded.
   */
  linkConnectionPendingBytes: 32 * MIB,
  linkPendingBytes: 96 * MIB,
  /**
   * Payloads being read, in all connections: each claims its room before it is read. Two of the largest. Small ones need no
   * claim, so that they never wait for large ones: one for each connection is bounded as bodies are.
   */
  linkClaimedPayloadBytes: 128 * MIB,
  linkUnclaimedPayloadBytes: MIB,
  /** A payload that holds its room while others wait arrives at this rate at least, but for its first seconds; or its connection is closed. */
  linkSlowPayload: { graceMs: 5_000, bytesPerSecond: 256 * KIB },
  /** What a message costs in memory beside its bytes, while it waits for its commit. */
  linkMessageOverheadBytes: 512,
  /** Answers that a producer does not read: beyond this its own socket is not read either. */
  linkUnreadAnswerBytes: MIB,
  /** A connection says who it is within this time, and something at all within the other (cell-link.md, Session). */
  linkHelloTimeoutMs: 5_000,
  linkSilenceTimeoutMs: 60_000,

  /** Names and short texts: long enough for any real one, short enough for a table row and a log line. */
  nameCharacters: 255,
  serialNumberCharacters: 255,
  contentTypeCharacters: 255,
  producerCharacters: 64,
  /** Messages for people: an exception with its stack fits. */
  messageCharacters: 16 * KIB,
  traceIdCharacters: 128,

  /** A program with more steps than this is a mistake of the tool that wrote it; the runs' documents carry them all. */
  stepsPerProgram: 1_000,
  runConfigsPerProgram: 1_000,
  robotsPerProgram: 64,

  /** Depth of a free-form value: a recursion in a reader stays far from its stack's end. */
  jsonDepth: 32,

  /**
   * A run's document is one record when the run ends, and one JSON answer: its free-form parts together stay under 16 MiB of
   * MessagePack, so that a record stays under the log's limit and an answer within what a client expects to parse.
   */
  runDocumentBytes: 16 * MIB,
  /** A run's metadata stands in its list entry: a page of 1,000 such entries stays under 64 MiB of MessagePack. */
  runMetadataBytes: 64 * KIB,
  framesPerRun: 1_000,
  /** Batches of one frame, appends of one series: each is an extent in the run's document. */
  batchesPerFrame: 20_000,
  appendsPerSeries: 20_000,
  eventsPerRun: 10_000,
  checksPerRun: 10_000,
  defectsPerRun: 10_000,
  filesPerRun: 1_000,
  jobsPerRun: 1_000,

  /** Points of a profile and lines of a frame: 4 times the widest head on the market, and a minute at 4,000 lines a second. */
  frameWidth: 16_384,
  frameLines: 262_144,
  /** A series as wide as the largest multi-channel controller, twice over. */
  channelsPerSeries: 64,
  invalidCodes: 64,

  /** Runs that are not ended are held in memory by recorder and front. */
  activeRuns: 10_000,
  /** Of all these runs' documents together: what keeps a few huge ones from taking the memory of both threads. */
  activeRunBytes: 256 * MIB,
  /** Documents of ended runs whose captures are still processed, held by the recorder: beyond it captures wait, as for room. */
  processedRunBytes: 64 * MIB,
  programs: 100_000,
  components: 1_000,

  /** Stored refusals of a producer, answered again on a resend (cell-link.md, Session). */
  refusalsPerProducer: 1_024,
  /** Of all producers together: they stand in the opening state of every segment. Some 40,000; beyond, the oldest go. */
  refusalBytes: 16 * MIB,
  /** Longest text in a refusal: a value or a path that came can be a megabyte, its answer need not be. */
  refusalTextCharacters: 1_000,
  producers: 10_000,
  /** A producer's name that has stored nothing for so long makes room for a new one where there is none. */
  producerUnusedDays: 90,
  /**
   * Queues of one producer's name of which the last number is known (cell-link.md, Session). Each restart of a producer makes one; one that comes
   * back after so many others have sent is a stranger, and sends again what it has no answer of.
   */
  instancesPerProducer: 16,

  /** Each may have a connection of its own open at any time, so that no receiver waits for another. */
  webhooks: 1_000,
  /** decisions.md, URLs. */
  webhookUrlCharacters: 2_048,
  /** Four times the longest that others give out. */
  webhookSecretCharacters: 512,
  /** Of a webhook's settings (interface.md, Limits). */
  deliveryTimeoutSeconds: { minimum: 1, maximum: 300 },
  retryBackoffSeconds: { minimum: 0, maximum: 30 },
  maxRetries: { minimum: 0, maximum: 10 },
  /** All attempts of one delivery (interface.md, Emission rules 5). */
  dispatchWindowMs: 10_000,
  /**
   * Tests and manual retries of one receiver that are waited for, those under way among them. They wait so long for their turn at most: one
   * that began later could not have its whole window, and be recorded, before `requestDeadlineMs`.
   */
  inlineOfReceiver: 64,
  inlineWaitMs: 18_000,
  /** What is kept of a receiver's answer (decisions.md, Success): body, and as much of its headers. */
  answerBodyBytes: 16 * KIB,
  answerHeaderBytes: 16 * KIB,
  /** An answer with more headers than this is none: far beyond what any server sends. */
  answerHeaderMostBytes: 256 * KIB,
  /** Attempts that are kept of a delivery, the latest: automatic ones are 11 at most, manual ones any number. */
  attemptsPerDelivery: 32,
  /**
   * Deliveries that are queued for their turn. Beyond it, further ones of a receiver that has its part queued already wait in the log, with
   * what pending state says of them and nothing more: a receiver that takes longer than events come gets them all, later.
   */
  deliveryBacklog: { waiting: 500_000, waitingOfReceiver: 500 },
  /** Stands beside the run's document in one record. An event beyond it carries its lists empty, and says so. */
  eventPayloadBytes: 12 * MIB,
} as const;
