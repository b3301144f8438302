import t from "tap";
import { controlLimitsOf } from "../../../../http/console/pages/programs/control-limits.js";

t.test("control limits of individual values", async (t) => {
  // NIST/SEMATECH e-Handbook of Statistical Methods, 6.3.2.2: mean, UCL and LCL as printed there.
  const flow = [49.6, 47.6, 49.9, 51.3, 47.8, 51.2, 52.6, 52.4, 53.6, 52.1];
  const { mean, lower, upper } = controlLimitsOf(flow) ?? { mean: 0, lower: 0, upper: 0 };
  t.equal(mean.toFixed(2), "50.81");
  t.ok(Math.abs(upper - 55.8041) < 1e-4, `${upper}`);
  t.ok(Math.abs(lower - 45.8159) < 1e-4, `${lower}`);

  t.equal(controlLimitsOf([]), undefined);
  t.equal(controlLimitsOf([3]), undefined, "one value has no moving range");
  t.same(controlLimitsOf([3, 3, 3]), { mean: 3, lower: 3, upper: 3 });
  t.equal(controlLimitsOf([1.7e308, -1.7e308, 1.7e308]), undefined, "no number is large enough");
});
