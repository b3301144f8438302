import type { ComponentChildren, RefObject } from "preact";

interface ScrollProps {
  label: string;
  class?: string;
  children: ComponentChildren;
  box?: RefObject<HTMLElement | null>;
  onScroll?: () => void;
}

/** What may be wider or higher than its place: it scrolls by itself, also by the keyboard. */
export function Scroll({ label, class: name = "", children, box, onScroll }: ScrollProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls only what has the focus
    <section class={`scroll ${name}`} tabIndex={0} aria-label={label} ref={box} onScroll={onScroll}>
      {children}
    </section>
  );
}
