/** What the page of a frame knows: its settings, which are in the address, and what it has read. */
import { batch, computed, effect, type Signal, signal, untracked } from "@preact/signals";
import { apiFetch } from "../data/api.js";
import { unit } from "../data/units.js";
import { place, setQuery } from "../router.js";
import type { Frame } from "./answers.js";
import { type Clouds, readClouds, type WantedClouds } from "./cloud/read-clouds.js";
import { type FrameState, frameQuery, readFrameState } from "./frame-state.js";
import { gridDifference, originDifference } from "./heights/frame-grid.js";
import { FrameProblem, problemOf } from "./heights/frame-problem.js";
import { type OpenFrame, openFrame, readBytes, withRemoval } from "./heights/frame-source.js";
import { DifferenceField, type HeightField } from "./heights/height-field.js";
import { decodeLuminance, type Luminance } from "./map/luminance.js";
import type { Size } from "./map/viewport.js";
import { type Profile, readProfile } from "./measure/cut-line.js";
import {
  decimalsFor,
  type HeightRange,
  percentileRange,
  sortedHeights,
  symmetricRange,
} from "./measure/height-range.js";

/** Something that is read: at first neither the value nor a problem is there. */
export interface Read<T> {
  readonly value?: T;
  readonly problem?: string;
}

/** By default the colours leave out one in a hundred at each end: a single wrong pixel must not use them up. */
const RANGE_PERCENT = 1;
/** The address follows a drag when it pauses. */
const ADDRESS_MS = 250;
/** A format that is still being made is asked for again after so long. */
const PASSING_MS = 2_000;

export class FrameModel {
  readonly frameId: string;
  readonly state: Signal<FrameState>;
  readonly here = signal<Read<OpenFrame>>({});
  readonly other = signal<Read<OpenFrame>>({});
  readonly luminance = signal<Read<Luminance>>({});
  readonly clouds = signal<Read<Clouds>>({});
  readonly profile = signal<Read<Profile>>({});
  /** Counts the blocks of lines that came: maps draw again. */
  readonly arrivals = signal(0);
  /** Why lines that are looked at could not be read. */
  readonly lineProblem = signal<string | undefined>(undefined);
  /** Counts how often the map went to a defect: it can go again to the one that is chosen already. */
  readonly goings = signal(0);
  /** The size of the map on the screen, or of the last one: the zoom to a defect depends on it. */
  mapSize: Size = { width: 800, height: 600 };
  /** The point that is read out, by column and line of this frame. */
  readonly pointed = signal<{ column: number; line: number } | undefined>(undefined);
  readonly #ended = new AbortController();
  #addressTimer = 0;
  #written: string;

  constructor(frameId: string) {
    this.frameId = frameId;
    const query = untracked(() => place.value.query);
    this.#written = String(query);
    this.state = signal(readFrameState(query));
  }

  /** Starts to read. @returns ends it */
  start(): () => void {
    const parts = [
      this.#follow(
        computed(() => this.frameId),
        this.here,
        (id, signal) => this.#open(id, signal),
      ),
      this.#follow(
        computed(() => this.state.value.other),
        this.other,
        (id, signal) => this.#open(id, signal),
      ),
      this.#follow(this.#luminanceFrame, this.luminance, (frame, signal) =>
        withRemoval(apiFetch, frame, signal, () => readLuminance(frame, signal)),
      ),
      this.#follow(this.#wantedClouds, this.clouds, (wanted, signal) => this.#readClouds(wanted, signal)),
      this.#follow(this.#cutField, this.profile, ({ field, cut }, signal) => readProfile(field, cut, signal), true),
      effect(() => this.#followAddress(place.value.query)),
    ];
    return () => {
      this.#ended.abort();
      clearTimeout(this.#addressTimer);
      for (const end of parts) end();
    };
  }

  /** Changes settings. A step back in the browser undoes the change if it `isStep`. */
  change(changes: Partial<FrameState>, isStep = false): void {
    this.state.value = { ...this.state.value, ...changes };
    clearTimeout(this.#addressTimer);
    if (isStep) this.#writeAddress(false);
    else this.#addressTimer = window.setTimeout(() => this.#writeAddress(true), ADDRESS_MS);
  }

  readonly otherProblem = computed(() => {
    const { problem } = this.other.value;
    return problem && `The other frame cannot be shown. ${problem}`;
  });

  /** Why the frames cannot be subtracted, or what people must know about their difference. */
  readonly comparison = computed((): { field?: DifferenceField; note?: string } => {
    const [here, other] = [this.here.value.value?.field, this.other.value.value?.field];
    if (here === undefined || other === undefined) return {};
    const reason = gridDifference(here.grid, other.grid);
    if (reason !== undefined) return { note: reason };
    return { field: new DifferenceField(here, other), note: originDifference(here.grid, other.grid) };
  });

  readonly #isDifference = computed(() => this.state.value.view === "difference");

  /** The heights that are shown and measured: the frame's, or the difference. */
  readonly field = computed((): HeightField | undefined =>
    this.#isDifference.value ? this.comparison.value.field : this.here.value.value?.field,
  );

  readonly sorted = computed(() => sortedHeights(this.field.value?.overview.zMm ?? new Float32Array(0)));

  readonly #usualRange = computed(() =>
    (this.#isDifference.value ? symmetricRange : percentileRange)(this.sorted.value, RANGE_PERCENT),
  );

  /**
   * Bounds of the colours; undefined if nothing was measured. The same object until they change: what is coloured by them is drawn anew then,
   * and a cloud has millions of points.
   */
  readonly range = computed(
    (): HeightRange | undefined => this.#usualRange.value && (this.state.value.range ?? this.#usualRange.value),
  );

  /** Decimals of the lengths that are shown. An inch needs one more. */
  readonly decimals = computed(
    () => decimalsFor(this.range.value ?? { low: 0, high: 0 }) + (unit.value === "in" ? 1 : 0),
  );

  /** Loads lines that a map shows. @returns false if they could not be read, and asking again may help */
  async loadLines(field: HeightField, first: number, end: number, signal: AbortSignal): Promise<boolean> {
    try {
      await field.load(first, end, AbortSignal.any([signal, this.#ended.signal]));
      this.lineProblem.value = undefined;
    } catch (error) {
      if (signal.aborted || this.#ended.signal.aborted) return true;
      this.lineProblem.value = sentenceOf(error);
      return false;
    }
    return true;
  }

  readonly #luminanceFrame = computed(() => {
    const frame = this.here.value.value?.frame;
    return this.state.value.view === "luminance" && frame?.geometry.luminance ? frame : undefined;
  });

  readonly #wantedClouds = computed((): WantedClouds | undefined => {
    const { view, cloud } = this.state.value;
    if (view !== "cloud" || this.here.value.value === undefined) return undefined;
    return cloud.colour === "removed" ? "both" : cloud.source;
  });

  #readClouds(wanted: WantedClouds, signal: AbortSignal): Promise<Clouds> {
    const { frame } = untracked(() => this.here.value.value) as OpenFrame;
    return withRemoval(apiFetch, frame, signal, () => readClouds(apiFetch, frame, wanted, signal));
  }

  readonly #cutField = computed(() => {
    const { cut } = this.state.value;
    const field = this.field.value;
    return cut && field && { cut, field };
  });

  async #open(id: string, signal: AbortSignal): Promise<OpenFrame> {
    const open = await openFrame(apiFetch, id, signal);
    open.rows.onLoad = () => {
      this.arrivals.value = untracked(() => this.arrivals.value) + 1;
    };
    return open;
  }

  /**
   * Keeps in `target` what is read for a key, and reads anew when the key changes. If the key is undefined, it reads nothing.
   * @param keepsOld until the new value is there
   */
  #follow<K, T>(
    key: { readonly value: K | undefined },
    target: Signal<Read<T>>,
    read: (key: K, signal: AbortSignal) => Promise<T>,
    keepsOld = false,
  ): () => void {
    return effect(() => {
      const wanted = key.value;
      if (!keepsOld || wanted === undefined) target.value = {};
      if (wanted === undefined) return;
      const reading = new AbortController();
      let timer = 0;
      const attempt = async (): Promise<void> => {
        try {
          const value = await read(wanted, reading.signal);
          if (!reading.signal.aborted) target.value = { value };
        } catch (error) {
          if (reading.signal.aborted) return;
          target.value = { problem: sentenceOf(error) };
          if (error instanceof FrameProblem && error.isPassing) {
            timer = window.setTimeout(() => void attempt(), PASSING_MS);
          }
        }
      };
      void attempt();
      return () => {
        clearTimeout(timer);
        reading.abort();
      };
    });
  }

  #followAddress(query: URLSearchParams): void {
    if (String(query) === this.#written) return;
    this.#written = String(query);
    this.state.value = readFrameState(query);
  }

  #writeAddress(replaces: boolean): void {
    const query = frameQuery(this.state.value);
    const names = new Set([...untracked(() => place.value.query).keys(), ...query.keys()]);
    const changes = Object.fromEntries([...names].map((name) => [name, query.get(name) ?? undefined]));
    batch(() => {
      setQuery(changes, replaces);
      // In the order of the address: it was not changed by somebody else.
      this.#written = String(untracked(() => place.value.query));
    });
  }
}

function sentenceOf(error: unknown): string {
  return problemOf(error, "the frame").message;
}

async function readLuminance({ id }: Frame, signal: AbortSignal): Promise<Luminance> {
  const path = `/sensor/frames/${id}/file.luminance.png`;
  const { bytes } = await readBytes(apiFetch, path, "the luminance", signal);
  return decodeLuminance(new Blob([bytes as BlobPart], { type: "image/png" }));
}
