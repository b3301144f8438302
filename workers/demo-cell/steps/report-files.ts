import type { Defect, QualityCheck } from "../../../core/run/quality.js";

export interface RunReport {
  program: string;
  serialNumber: string;
  checks: readonly QualityCheck[];
  defects: readonly Defect[];
}

/** A protocol for people, with one line for each check and each finding. */
export function protocolText(report: RunReport): Uint8Array {
  const lines = [`Inspection protocol`, `Program  ${report.program}`, `Part     ${report.serialNumber}`, "", "Checks"];
  for (const { name, status, value, nominal, threshold, canonical_units: units } of report.checks) {
    const unit = units === "mm" ? " mm" : "";
    const measured = typeof value === "number" ? `${value}${unit}` : "-";
    const atLeast = typeof threshold === "number" ? ` (at least ${threshold}${unit})` : "";
    const target = typeof nominal === "number" ? ` (nominal ${nominal} +/- ${threshold ?? "-"}${unit})` : atLeast;
    lines.push(`  ${status.padEnd(14)}${name.padEnd(24)}${measured}${target}`);
  }
  lines.push("", report.defects.length === 0 ? "No findings" : "Findings (informational)");
  for (const { type, description, severity } of report.defects) {
    lines.push(`  ${(severity ?? "-").padEnd(14)}${(type ?? "-").padEnd(24)}${description ?? ""}`);
  }
  return Buffer.from(`${lines.join("\n")}\n`);
}

/** The same protocol for machines. */
export function reportJson(report: RunReport): Uint8Array {
  const { program, serialNumber: serial_number, checks, defects } = report;
  return Buffer.from(`${JSON.stringify({ program, serial_number, checks, defects }, null, 2)}\n`);
}
