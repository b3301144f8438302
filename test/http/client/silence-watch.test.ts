import t, { type Test } from "tap";
import { SilenceWatch } from "../../../http/client/silence-watch.js";

function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
}

function hasNoTimer(t: Test, watch: SilenceWatch, before: number): void {
  watch.begin();
  t.equal(timers(), before);
  t.ok(watch.signal.aborted);
}

t.test("a watch begins no timer when the caller has left already, or after its end", async (t) => {
  const before = timers();
  hasNoTimer(t, new SilenceWatch(AbortSignal.abort()), before);
  const watch = new SilenceWatch(undefined);
  t.equal(timers(), before + 1);
  watch.close();
  hasNoTimer(t, watch, before);
});

t.test("the caller's abort ends the attempt, and leaves no timer", async (t) => {
  const before = timers();
  const caller = new AbortController();
  const watch = new SilenceWatch(caller.signal);
  caller.abort();
  hasNoTimer(t, watch, before);
});
