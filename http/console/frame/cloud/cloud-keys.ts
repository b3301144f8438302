import type { CloudScene, CloudView } from "./cloud-scene.js";

const TURN = Math.PI / 24;
const ZOOM_FACTOR = 1.25;

export const CLOUD_KEYS =
  "Arrow keys turn the cloud, plus and minus zoom, 0 shows all, 1 shows it from above, 2 from the front, 3 from the side. " +
  "P picks the point in the middle; two picked points are measured.";

const TURNS: Readonly<Record<string, readonly [azimuth: number, polar: number, factor: number]>> = {
  ArrowLeft: [-TURN, 0, 1],
  ArrowRight: [TURN, 0, 1],
  ArrowUp: [0, -TURN, 1],
  ArrowDown: [0, TURN, 1],
  "+": [0, 0, 1 / ZOOM_FACTOR],
  "=": [0, 0, 1 / ZOOM_FACTOR],
  "-": [0, 0, ZOOM_FACTOR],
};
const VIEWS: Readonly<Record<string, CloudView>> = { "0": "home", "1": "top", "2": "front", "3": "side" };

/** @returns whether the key meant something to the cloud */
export function cloudKey(event: KeyboardEvent, scene: CloudScene): boolean {
  if (event.ctrlKey || event.metaKey) return false;
  const view = VIEWS[event.key];
  if (view !== undefined) scene.look(view);
  const turn = TURNS[event.key];
  if (turn !== undefined) scene.turn(...turn);
  return view !== undefined || turn !== undefined;
}
