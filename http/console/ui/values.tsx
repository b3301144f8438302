/** Times, texts from outside, and lengths, as every page shows them. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { RunSummary } from "../data/api.js";
import { localTime, utcTime } from "../data/times.js";
import { fixed, inUnit, plain, unit } from "../data/units.js";
import { Scroll } from "./scroll.js";

/** A time in the viewer's zone; the tooltip shows UTC. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={utcTime(at)}>
      {localTime(at)}
    </time>
  );
}

/** Which inspection of its part a run is, unless it is the first. */
export function InspectionNote({ run, class: name = "" }: { run: Pick<RunSummary, "revision">; class?: string }) {
  if ((run.revision ?? 1) <= 1) return null;
  return <span class={`note ${name}`}>inspection {run.revision}</span>;
}

/** Names have fewer: they may stand in links, where no button may be. */
const SHOWN_CHARACTERS = 512;

interface TextProps {
  of: string | null | undefined;
  none?: string;
}

/** A text from outside. A long one is shortened, with a button that shows all of it. */
export function Text({ of, none }: TextProps) {
  return (
    <>
      <ShortText of={of} none={none} />
      <ShowAll key={of} of={of} />
    </>
  );
}

/** A text that stands in a button. A long one is shortened, and `ShowAll` stands beside that button. */
export function ShortText({ of, none = "–" }: TextProps) {
  if (of === null || of === undefined || of === "") return <>{none}</>;
  if (of.length <= SHOWN_CHARACTERS) return <Isolated text={of} title={of} />;
  return <Isolated text={`${of.slice(0, SHOWN_CHARACTERS)}…`} />;
}

/** The writing direction of the text does not affect what follows. */
function Isolated({ text, title }: { text: string; title?: string }) {
  // If the text leaves a direction mark open, the end of the element would close that mark, and not the element's own.
  const ends = "\u2069".repeat(text.match(/[\u2066-\u2068]/g)?.length ?? 0);
  return (
    <bdi class="text" title={title}>
      {text + ends}
    </bdi>
  );
}

/** A button that shows all of a long text; nothing for a short one. */
export function ShowAll({ of }: Pick<TextProps, "of">) {
  const [isOpen, setIsOpen] = useState(false);
  if (!of || of.length <= SHOWN_CHARACTERS) return null;
  return (
    <>
      {" "}
      <button type="button" class="quiet show-all" aria-haspopup="dialog" onClick={() => setIsOpen(true)}>
        Show all
      </button>
      {isOpen && (
        <dialog class="whole-text" aria-label="The whole text" ref={openDialog} onClose={() => setIsOpen(false)}>
          <Scroll label="Text">
            <Isolated text={of} />
          </Scroll>
          <p class="buttons">
            <button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>
              Close
            </button>
          </p>
        </dialog>
      )}
    </>
  );
}

/** A function that stays the same: it is called only when the dialog appears or goes. */
function openDialog(dialog: HTMLDialogElement | null): void {
  dialog?.showModal();
}

/** A number of a check, in the viewer's unit if it is a length. */
export function checkNumber(value: number | null | undefined, isLength: boolean, decimals: number): string {
  if (value === null || value === undefined) return "";
  return isLength ? fixed(inUnit(value), decimals) : plain(value);
}

export function unitOf(isLength: boolean): string {
  return isLength ? unit.value : "";
}

/** A value of free-form data: deeper ones as JSON. */
function factText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Free-form data in one line. */
export function factLine(of: Readonly<Record<string, unknown>>): string {
  return Object.entries(of)
    .map(([name, value]) => `${name}: ${factText(value)}`)
    .join(", ");
}

/** Free-form data: names and values. */
export function Facts({ of }: { of: Readonly<Record<string, unknown>> }) {
  return (
    <dl class="fact-list">
      {Object.entries(of).map(([name, value]) => (
        <div key={name}>
          <dt>
            <Text of={name} />
          </dt>
          <dd>
            <Text of={factText(value)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

interface SectionProps {
  title: string;
  /** Beside the title: counts, controls. */
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export function Section({ title, aside, class: name = "", children }: SectionProps) {
  return (
    <section class={`card ${name}`}>
      <header class="card-head">
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}
