import type { MapControl } from "./map-control.js";

const ZOOM_FACTOR = 1.5;
/** By how much a press of an arrow key with Shift moves the view. */
export const PAN_PIXELS = 80;
const FAR = 10;

/** Written beside the map, and read out with it. */
export const MAP_KEYS =
  "Arrow keys move the point that is read out, with Alt ten times as far; with Shift they move the map. Plus and minus zoom, 0 shows all. " +
  "C begins a cut line at the point, and C again ends it; Escape cancels it.";

/** @returns whether the key meant something to the map */
export function mapKey(event: KeyboardEvent, control: MapControl): boolean {
  if (event.ctrlKey || event.metaKey) return false;
  const arrow = ARROWS[event.key];
  if (arrow !== undefined) {
    const [x, y] = arrow;
    const step = control.step * (event.altKey ? FAR : 1);
    if (event.shiftKey) control.onPan(-x * PAN_PIXELS, -y * PAN_PIXELS);
    else control.move(x * step, y * step);
    return true;
  }
  if (event.altKey) return false;
  // In lower case, because Caps Lock changes the letters.
  const action = ACTIONS[event.key.toLowerCase()];
  action?.(control);
  return action !== undefined;
}

/** To the right and down. */
export const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

const ACTIONS: Readonly<Record<string, (control: MapControl) => void>> = {
  "+": (control) => control.zoomAtPoint(ZOOM_FACTOR),
  "=": (control) => control.zoomAtPoint(ZOOM_FACTOR),
  "-": (control) => control.zoomAtPoint(1 / ZOOM_FACTOR),
  "0": (control) => control.showAll(),
  c: (control) => control.cutHere(),
  escape: (control) => control.cancelCut(),
};
