import type { ComponentRow } from "../../core/health.js";
import { healthResponse } from "../../core/health-response.js";
import { openApiDocument } from "../openapi/openapi.js";
import { jsonBytesReply, jsonReply, type Reply, wholeReply } from "../replies/reply.js";
import { defineRoute, type Route } from "../requests/route.js";
import { Metrics } from "../service/metrics.js";
import { jsonResponse } from "./declared-parameters.js";

const TAG = "system";

/**
 * @param health gives the rows of all components: those of the cell and of the service
 * @param isStarting of a hub: whether it is still being filled
 */
export function systemRoutes(
  health: () => readonly ComponentRow[],
  serviceVersion: string,
  isStarting: () => boolean = () => false,
): Route[] {
  return [
    defineRoute({
      path: "/health",
      operationId: "getHealth",
      tag: TAG,
      summary: "The health of the service and of the cell, component by component.",
      responses: {
        200: jsonResponse("SystemStateResponse", "Every required component is up: healthy or degraded."),
        503: jsonResponse("SystemStateResponse", "A required component is down."),
      },
      showsKeyFault: true,
      handle() {
        const response = healthResponse(health());
        return jsonReply(response, response.status === "down" ? 503 : 200);
      },
    }),
    defineRoute({
      path: "/system/version",
      operationId: "getVersion",
      tag: TAG,
      summary: "The release of the running build.",
      responses: { 200: jsonResponse("VersionResponse", "The release.") },
      handle: () => jsonReply({ "service-version": serviceVersion }),
    }),
    defineRoute({
      path: "/livez",
      operationId: "getLiveness",
      tag: TAG,
      summary: "Answers as long as the process serves requests. A supervisor should restart by this, not by /health.",
      responses: { 200: jsonResponse("LivenessResponse", "The process is alive.") },
      scope: "none",
      handle: () => jsonReply({ status: isStarting() ? "starting" : "alive" }),
    }),
  ];
}

export function metricsRoute(metrics: Metrics): Route {
  return defineRoute({
    path: "/metrics",
    operationId: "getMetrics",
    tag: TAG,
    summary: "Figures of the running service in the Prometheus text format.",
    responses: { 200: { description: "The figures.", contentType: "text/plain", schema: { type: "string" } } },
    handle: async () => wholeReply(Buffer.from(await metrics.text()), Metrics.contentType, false),
  });
}

/** GET /openapi.json: describes `routes` and itself. @param baseUrl of links; undefined: the request's Host */
export function openApiRoute(routes: readonly Route[], serviceVersion: string, baseUrl: string | undefined): Route {
  let document: Reply | undefined;
  const route: Route = defineRoute({
    path: "/openapi.json",
    operationId: "getOpenApi",
    tag: TAG,
    summary: "This interface as an OpenAPI 3.1 document, generated from the declarations of the routes.",
    responses: {
      200: { description: "The document.", contentType: "application/json", schema: { type: "object" } },
    },
    handle(): Reply {
      document ??= jsonBytesReply(
        Buffer.from(JSON.stringify(openApiDocument([...routes, route], serviceVersion, baseUrl))),
        true,
      );
      return document;
    },
  });
  return route;
}
