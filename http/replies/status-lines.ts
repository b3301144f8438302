import { STATUS_CODES } from "node:http";

export function statusLine(status: number): string {
  return `${status} ${STATUS_CODES[status] ?? ""}`;
}
