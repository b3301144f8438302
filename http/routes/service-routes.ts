import type { ComponentRow } from "../../core/health.js";
import type { AddressPolicy } from "../../core/webhook/address-policy.js";
import type { View } from "../../storage/view/view.js";
import type { WebhookRequest } from "../../workers/webhooks/webhook-requests.js";
import { DeliveryDocuments } from "../documents/delivery-documents.js";
import type { LargeDocuments } from "../documents/large-documents.js";
import type { ProgramStatistics } from "../documents/program-statistics.js";
import { RunDocuments } from "../documents/run-documents.js";
import { RunPages } from "../documents/run-pages.js";
import { type FetchForReport, RunReports } from "../documents/run-reports.js";
import type { ThreadSlices } from "../documents/thread-slices.js";
import type { GeneratedFiles } from "../downloads/generated-files.js";
import type { OpenStoredExtents } from "../downloads/stored-stream.js";
import type { LiveClients } from "../live/live-clients.js";
import type { Route } from "../requests/route.js";
import type { Metrics } from "../service/metrics.js";
import { consoleRoutes } from "./console-routes.js";
import { docsRoutes } from "./docs-routes.js";
import { fileRoutes } from "./file-routes.js";
import { liveRoutes } from "./live-routes.js";
import { programRoutes } from "./program-routes.js";
import { reportRoute, runRoutes } from "./run-routes.js";
import { statisticsRoutes } from "./statistics/statistics-routes.js";
import { metricsRoute, openApiRoute, systemRoutes } from "./system-routes.js";
import { deliveryRoutes } from "./webhooks/delivery-routes.js";
import { resendRoutes } from "./webhooks/resend-routes.js";
import { secretRoutes } from "./webhooks/secret-routes.js";
import { webhookRoutes } from "./webhooks/webhook-routes.js";

/** Cache of ended runs' documents: some ten thousand of a few kilobytes each. */
const RUN_DOCUMENT_CACHE_BYTES = 64 * 1024 * 1024;

/** Cache of list pages between two changes: some eight hundred pages of 50 entries. */
const RUN_PAGE_CACHE_BYTES = 32 * 1024 * 1024;

export interface ServiceRouteOptions {
  view: View;
  openStoredExtents: OpenStoredExtents;
  generatedFiles: GeneratedFiles;
  /** At a hub: fetches the captures that a report shows. */
  fetchForReport?: FetchForReport | undefined;
  large: LargeDocuments;
  statistics: ProgramStatistics;
  /** Lets long work of this thread give way to other requests. */
  slices: ThreadSlices;
  live: LiveClients;
  health(): readonly ComponentRow[];
  serviceVersion: string;
  metrics: Metrics;
  /** What absolute links start with; undefined: the request's Host. */
  baseUrl?: string | undefined;
  /** A write about webhooks: resolves when it is committed and the view shows it. */
  request(request: WebhookRequest, gone?: AbortSignal): Promise<string>;
  /** At a hub: it does not show everything yet. */
  isStarting?(): boolean;
  /** Which addresses webhooks may be delivered to at a port. */
  receiverPolicy(this: void, port: number): AddressPolicy;
}

/** Every route of the interface. */
export function serviceRoutes(options: ServiceRouteOptions): Route[] {
  const { view, openStoredExtents, generatedFiles, health, serviceVersion, metrics, request, receiverPolicy } = options;
  const { slices, large, live } = options;
  const pages = new RunPages(view, RUN_PAGE_CACHE_BYTES, slices);
  const documents = new RunDocuments(view, RUN_DOCUMENT_CACHE_BYTES, large);
  const routes = [
    ...runRoutes(view, documents, large, pages),
    reportRoute(new RunReports({ view, files: generatedFiles, slices, large, fetchForReport: options.fetchForReport })),
    ...liveRoutes({ view, documents, live, serviceVersion }),
    ...programRoutes(view, slices),
    ...statisticsRoutes(view, options.statistics),
    ...fileRoutes(view, large, { open: openStoredExtents, generated: generatedFiles }),
    ...webhookRoutes(view, request, receiverPolicy),
    ...secretRoutes(view, request, receiverPolicy),
    ...resendRoutes(view, request, slices),
    ...deliveryRoutes(view, new DeliveryDocuments(view, slices), request),
    ...systemRoutes(health, serviceVersion, options.isStarting),
    metricsRoute(metrics),
    ...docsRoutes(),
    ...consoleRoutes(options.baseUrl),
  ];
  return [...routes, openApiRoute(routes, serviceVersion, options.baseUrl)];
}
