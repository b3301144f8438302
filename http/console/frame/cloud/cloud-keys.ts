import { ARROWS, PAN_PIXELS } from "../map/map-keys.js";
import type { CloudScene, CloudView } from "./cloud-scene.js";

const TURN = Math.PI / 24;
const ZOOM_FACTOR = 1.25;

export const CLOUD_KEYS =
  "Arrow keys turn the cloud, with Shift they move it. Plus and minus zoom, 0 shows all, " +
  "1 shows it from above, 2 from the front, 3 from the side. P picks the point in the middle; two picked points are measured.";

const ZOOMS: Readonly<Record<string, number>> = { "+": 1 / ZOOM_FACTOR, "=": 1 / ZOOM_FACTOR, "-": ZOOM_FACTOR };
const VIEWS: Readonly<Record<string, CloudView>> = { "0": "home", "1": "top", "2": "front", "3": "side" };

/** @returns whether the key meant something to the cloud */
export function cloudKey(event: KeyboardEvent, scene: CloudScene): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const view = VIEWS[event.key];
  if (view !== undefined) scene.look(view);
  const arrow = ARROWS[event.key];
  const factor = ZOOMS[event.key];
  if (arrow !== undefined) {
    const [x, y] = arrow;
    if (event.shiftKey) scene.pan(x * PAN_PIXELS, y * PAN_PIXELS);
    else scene.turn(x * TURN, y * TURN);
  } else if (factor !== undefined) scene.turn(0, 0, factor);
  return (view ?? arrow ?? factor) !== undefined;
}
