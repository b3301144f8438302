import type { Point2 } from "../../../../core/run/oriented-box.js";

/** What a person does on a map, in pixels of the screen from its top left. */
export interface MapGestures {
  /** The pointer is over a place; undefined: it has left. */
  onHover(at: Point2 | undefined): void;
  onPan(byX: number, byY: number): void;
  onZoom(factor: number, at: Point2): void;
  onClick(at: Point2): void;
  /** Whether a drag from there draws a line. Else it pans. */
  drawsFrom(at: Point2): boolean;
  onDraw(from: Point2, to: Point2, isDone: boolean): void;
}

/** A pointer that moves less between down and up has clicked. */
const CLICK_PIXELS = 4;
const WHEEL_FACTOR = 1.0015;
/** Wheels that count in lines. */
const LINE_PIXELS = 20;

/** Listens to mouse, pen and fingers: drag pans or draws, wheel and two fingers zoom. @returns ends it */
export function listenToGestures(element: HTMLElement, gestures: MapGestures): () => void {
  const listening = new AbortController();
  const fingers = new Map<number, Point2>();
  let down: Point2 | undefined;
  let isDrawing = false;
  let hasMoved = false;
  const place = (event: MouseEvent): Point2 => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const on = <K extends keyof HTMLElementEventMap>(name: K, listener: (event: HTMLElementEventMap[K]) => void): void =>
    element.addEventListener(name, listener, { signal: listening.signal, passive: false });

  on("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    const at = place(event);
    fingers.set(event.pointerId, at);
    if (fingers.size > 1) {
      isDrawing = false;
      hasMoved = true;
      return;
    }
    down = at;
    hasMoved = false;
    isDrawing = gestures.drawsFrom(at);
  });
  on("pointermove", (event) => {
    const at = place(event);
    const before = fingers.get(event.pointerId);
    if (before === undefined || down === undefined) return gestures.onHover(at);
    if (fingers.size === 2) return pinch(event.pointerId, before, at);
    if (!hasMoved && Math.hypot(at[0] - down[0], at[1] - down[1]) < CLICK_PIXELS) return;
    hasMoved = true;
    fingers.set(event.pointerId, at);
    if (isDrawing) gestures.onDraw(down, at, false);
    else gestures.onPan(at[0] - before[0], at[1] - before[1]);
    gestures.onHover(at);
  });
  const pinch = (id: number, before: Point2, at: Point2): void => {
    const other = [...fingers].find(([finger]) => finger !== id)?.[1];
    fingers.set(id, at);
    if (other === undefined) return;
    const apart = (point: Point2): number => Math.max(1, Math.hypot(point[0] - other[0], point[1] - other[1]));
    gestures.onPan((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
    gestures.onZoom(apart(at) / apart(before), [(at[0] + other[0]) / 2, (at[1] + other[1]) / 2]);
  };
  on("pointerup", (event) => {
    const at = place(event);
    fingers.delete(event.pointerId);
    if (fingers.size > 0 || down === undefined) return;
    if (!hasMoved) gestures.onClick(at);
    else if (isDrawing) gestures.onDraw(down, at, true);
    down = undefined;
  });
  on("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    down = undefined;
  });
  on("pointerleave", () => gestures.onHover(undefined));
  on("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1);
    gestures.onZoom(WHEEL_FACTOR ** -pixels, place(event));
  });
  return () => listening.abort();
}
