import t from "tap";
import { LIMITS } from "../../core/limits.js";

t.test("the limits that the interface and the cell link state", async (t) => {
  t.same(LIMITS.runsPage, { default: 50, minimum: 1, maximum: 1000 });
  t.same(LIMITS.programsPage, { default: 100, minimum: 1, maximum: 1000 });
  t.same(LIMITS.programRunsPage, { default: 100, minimum: 1, maximum: 1000 });
  t.same(LIMITS.deliveriesPage, { default: 50, minimum: 1, maximum: 200 });
  t.equal(LIMITS.httpBodyBytes, 65_536);
  t.equal(LIMITS.linkBodyBytes, 1_048_576);
  t.equal(LIMITS.linkPayloadBytes, 67_108_864);
  t.equal(LIMITS.producerCharacters, 64);
  t.equal(LIMITS.refusalsPerProducer, 1_024);
  t.equal(LIMITS.nameCharacters, 255);
});

t.test("every limit is a positive integer, and one message fits into the whole that it is part of", async (t) => {
  for (const [name, limit] of Object.entries(LIMITS)) {
    if (typeof limit === "number") t.ok(Number.isSafeInteger(limit) && limit > 0, name);
  }
  t.ok(LIMITS.linkBodyBytes < LIMITS.runDocumentBytes);
  t.ok(LIMITS.frameWidth * 8 <= LIMITS.linkPayloadBytes, "the widest line fits into a payload");
});
