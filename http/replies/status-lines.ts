/** Status lines of what the service answers (RFC 9110, section 15). */
const STATUS_LINES: Readonly<Record<number, string>> = {
  101: "101 Switching Protocols",
  200: "200 OK",
  201: "201 Created",
  204: "204 No Content",
  206: "206 Partial Content",
  304: "304 Not Modified",
  400: "400 Bad Request",
  401: "401 Unauthorized",
  403: "403 Forbidden",
  404: "404 Not Found",
  405: "405 Method Not Allowed",
  409: "409 Conflict",
  410: "410 Gone",
  411: "411 Length Required",
  412: "412 Precondition Failed",
  413: "413 Content Too Large",
  415: "415 Unsupported Media Type",
  416: "416 Range Not Satisfiable",
  421: "421 Misdirected Request",
  422: "422 Unprocessable Content",
  426: "426 Upgrade Required",
  500: "500 Internal Server Error",
  503: "503 Service Unavailable",
};

export function statusLine(status: number): string {
  return STATUS_LINES[status] ?? String(status);
}
