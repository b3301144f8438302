import { SYSTEM_TIMERS } from "../../core/timers.js";
import { type CaptureKind, capturePath } from "../../storage/captures/capture-path.js";
import { CaptureReader } from "../../storage/captures/capture-reader.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { LogReader } from "../../storage/log/log-reader.js";
import { View } from "../../storage/view/view.js";
import type { RecorderHandle } from "../../workers/recorder/recorder-handle.js";
import { ArtefactWork } from "../downloads/artefact-work.js";
import { GeneratedFiles } from "../downloads/generated-files.js";
import type { OpenStoredExtents } from "../downloads/stored-stream.js";
import { HubCaptures } from "../hub/hub-captures.js";
import type { ServiceLog } from "../log/service-log.js";
import type { ApiKeys } from "../requests/api-keys.js";
import { ServiceHealth } from "./service-health.js";

/** Cache of PLY and CSV pieces for the next client: a frame or two. */
const GENERATED_FILES_BYTES = 64 * 1024 * 1024;

export interface ServiceReadersOptions {
  dataDirectory: string;
  log: ServiceLog;
  /** Undefined: no key is needed. */
  apiKeys: ApiKeys | undefined;
  artefactThreads: number;
  /** The store is that of a hub. */
  isHub: boolean;
}

/** Everything of the front's thread that reads the store: the view, the readers of log and captures, and the artefact pool. */
export class ServiceReaders {
  readonly log: LogReader;
  readonly captures = new CaptureReader({ fileSystem: nodeFileSystem });
  readonly health: ServiceHealth;
  readonly artefacts: ArtefactWork;
  readonly generatedFiles: GeneratedFiles;
  readonly openStoredExtents: OpenStoredExtents;
  /** Resolves when recording has failed, with the time and the reason. */
  readonly recordingEnded: Promise<string>;
  setRecordingEnded: (cause: string) => void = () => {};
  readonly view: View;
  /** Undefined at a cell. */
  readonly hubCaptures: HubCaptures | undefined;
  /** The hub's thread: set when it is started, before anything is served. */
  hub: RecorderHandle | undefined;
  /** The store has been read: from now on other work wants the thread too. */
  isServing = false;
  /** At a hub: the view does not have everything yet that the plant had when the hub started. */
  isStarting: boolean;
  readonly #dataDirectory: string;

  constructor({ dataDirectory, log, apiKeys, artefactThreads, isHub }: ServiceReadersOptions) {
    this.isStarting = isHub;
    this.#dataDirectory = dataDirectory;
    this.log = new LogReader({ fileSystem: nodeFileSystem, directory: `${dataDirectory}/meta` });
    const nowUs = () => Date.now() * 1000;
    const health = new ServiceHealth({ dataDirectory, log, keyFault: () => apiKeys?.fault ?? null, nowUs });
    this.health = health;
    this.view = new View({ isHub, reader: this.log, onReadFailure: (error) => health.readDamage.note(error) });
    this.artefacts = new ArtefactWork({
      threads: artefactThreads,
      timers: SYSTEM_TIMERS,
      report: (message, fields) => log.warn(fields, message),
      // What a report of a hub leaves out, the plant does not have: that is no damage.
      onReadDamage: (error) => isHub || health.readDamage.note(error),
      nowUs,
    });
    const pathOf = (runId: string, kind: CaptureKind) => this.capturePathOf(runId, kind);
    this.hubCaptures = isHub
      ? new HubCaptures({ view: this.view, reader: this.captures, pathOf, hub: () => this.hub as RecorderHandle })
      : undefined;
    this.openStoredExtents =
      this.hubCaptures?.open ?? ((runId, kind, extents) => this.captures.openExtents(pathOf(runId, kind), extents));
    this.generatedFiles = new GeneratedFiles({
      make: this.artefacts.makeForClient,
      open: this.openStoredExtents,
      useStored: this.hubCaptures?.use,
      capturePathOf: (runId) => this.capturePathOf(runId, "capture"),
      keptBytes: GENERATED_FILES_BYTES,
    });
    this.recordingEnded = new Promise<string>((resolve) => {
      this.setRecordingEnded = resolve;
    });
  }

  capturePathOf(runId: string, kind: CaptureKind): string {
    return `${this.#dataDirectory}/captures/${capturePath(runId, kind)}`;
  }

  finishOpening(): void {
    this.view.fold.finishOpening();
    this.isServing = true;
  }

  close(): void {
    this.log.close();
    this.captures.close();
  }
}
