import t from "tap";
import { ServiceError } from "../../../core/service-errors.js";
import { jsonReply } from "../../../http/replies/reply.js";
import { PathRouter } from "../../../http/requests/path-router.js";
import { defineRoute } from "../../../http/requests/route.js";
import { heldBytes } from "../../helpers/process/held-memory.js";

function route(path: string, names: string[] = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)) {
  return defineRoute({
    method: "GET",
    path,
    operationId: path,
    tag: "test",
    summary: path,
    pathParameters: Object.fromEntries(
      names.map((name) => [
        name,
        {
          description: name,
          schema: { type: "string" },
          notFound: name === "name" ? "file_not_found" : "run_not_found",
        },
      ]),
    ),
    query: {},
    responses: {},
    errors: [],
    scope: "read",
    handle: () => jsonReply({}),
  });
}

const router = new PathRouter([
  route("/runs"),
  route("/runs/active"),
  route("/runs/{run_id}"),
  route("/runs/{run_id}/files/{name}"),
]);

function outcome(path: string, method = "GET"): unknown {
  try {
    const match = router.find(method, path);
    return [match.route.path, match.params];
  } catch (error) {
    if (error instanceof ServiceError) return error.data.code;
    throw error;
  }
}

t.test("paths are matched segment by segment, a literal before a parameter", async (t) => {
  t.same(outcome("/runs"), ["/runs", {}]);
  t.same(outcome("/runs/active"), ["/runs/active", {}]);
  t.same(outcome("/runs/abc"), ["/runs/{run_id}", { run_id: "abc" }]);
  t.same(outcome("/runs/%61ctive"), ["/runs/{run_id}", { run_id: "active" }]);
  t.same(outcome("/runs/r/files/a%20%C3%A9.txt"), ["/runs/{run_id}/files/{name}", { run_id: "r", name: "a é.txt" }]);
  t.same(outcome("/runs/r", "HEAD"), ["/runs/{run_id}", { run_id: "r" }]);
});

t.test("what no route has is 404", async (t) => {
  for (const path of [
    "",
    "/",
    "//",
    "/run",
    "/runs/",
    "/runs//files/x",
    "/runs/r/files",
    "/runs/r/files/",
    "/runs/r/files/a/b",
    "/runs/../runs",
    "/Runs",
    "/__proto__",
    "/constructor",
  ]) {
    t.equal(outcome(path), "route_not_found", path);
  }
});

t.test("a parameter that cannot be decoded is the resource's own 404", async (t) => {
  for (const raw of ["%zz", "%", "%C0%AE", "%ff", "%ED%A0%80", "\ufffd"]) {
    t.equal(outcome(`/runs/${raw}`), "run_not_found", raw);
    t.equal(outcome(`/runs/r/files/${raw}`), "file_not_found", raw);
  }
  t.same(outcome("/runs/r/files/..%2F..%2Fetc%00"), [
    "/runs/{run_id}/files/{name}",
    { run_id: "r", name: "../../etc\0" },
  ]);
});

t.test("another method is 405, and says what is allowed", async (t) => {
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
    t.equal(outcome("/runs", method), "method_not_allowed", method);
  try {
    router.find("POST", "/runs");
    t.fail("accepted");
  } catch (error) {
    t.same((error as ServiceError).data.params, { method: "POST", allow: ["GET", "HEAD", "OPTIONS"] });
  }
});

t.test("declarations that contradict each other are refused", async (t) => {
  t.throws(() => new PathRouter([route("/a/{run_id}"), route("/a/{name}")]), /declared twice/);
  t.throws(() => new PathRouter([route("/a/{run_id}", ["name"])]), /path parameters/);
});

t.test("where a path leads is the same the first time and later, however many others came between", async (t) => {
  const paths = Array.from({ length: 2_500 }, (_, nth) => `/runs/r${nth}%20`);
  for (const round of [1, 2]) {
    for (const [nth, path] of paths.entries()) {
      const expected = JSON.stringify(["/runs/{run_id}", { run_id: `r${nth} ` }]);
      // Asked for twice: the second answer is remembered.
      for (const time of [1, 2]) {
        if (JSON.stringify(outcome(path)) !== expected) t.fail(`${path}, round ${round}, time ${time}`);
      }
    }
  }
  t.equal(outcome("/runs/r1%20", "POST"), "method_not_allowed", "what is remembered is of GET alone");
  t.same(outcome("/runs/r1%20", "HEAD"), ["/runs/{run_id}", { run_id: "r1 " }]);
  const { params } = router.find("GET", "/runs/r1%20");
  t.throws(() => Object.assign(params, { run_id: "other" }), TypeError, "no handler can change what the next one gets");
  for (const time of [1, 2]) t.equal(outcome("/runs/%ff"), "run_not_found", `time ${time}`);
});

t.test("long paths are not remembered", (t) => {
  const paths = 2_048;
  const characters = 16_384;
  // Each path is a flat string of its own, at a place of its own: the place depends on the last characters.
  const path = (nth: number) =>
    Buffer.from(`/runs/${"a".repeat(characters)}${nth.toString(36).padStart(4, "0")}`).toString();
  const own = new PathRouter([route("/runs/{run_id}")]);
  own.find("GET", path(0));
  const before = heldBytes();
  for (let nth = 0; nth < paths; nth++) own.find("GET", path(nth));
  const grown = heldBytes() - before;
  t.ok(grown < (paths * characters) / 8, `${grown} bytes after ${paths} paths of ${characters} characters`);
  t.match(own.find("GET", "/runs/x"), { params: { run_id: "x" } });
  t.end();
});
