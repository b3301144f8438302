import t from "tap";
import { CHECK_STATUSES, type CheckStatus, reportStatus } from "../../../core/run/quality.js";

const checks = (...statuses: CheckStatus[]) => statuses.map((status, at) => ({ name: `c${at}`, status }));

t.test("failed, else indeterminate, else passed: every set of statuses", async (t) => {
  for (let bits = 1; bits < 1 << CHECK_STATUSES.length; bits++) {
    const present = CHECK_STATUSES.filter((_, at) => bits & (1 << at));
    let expected = "passed";
    if (present.includes("not_evaluated") || present.includes("error")) expected = "indeterminate";
    if (present.includes("failed")) expected = "failed";
    t.equal(reportStatus(checks(...present)), expected, present.join(" "));
    t.equal(reportStatus(checks(...present.reverse())), expected, "in any order");
  }
});
