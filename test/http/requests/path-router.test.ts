import t from "tap";
import { ServiceError } from "../../../core/service-errors.js";
import { jsonReply } from "../../../http/replies/reply.js";
import { PathRouter } from "../../../http/requests/path-router.js";
import { defineRoute } from "../../../http/requests/route.js";

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
