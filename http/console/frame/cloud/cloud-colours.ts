import type { CloudColour } from "../frame-state.js";
import { paletteStep, viridis } from "../measure/colour-map.js";
import type { HeightRange } from "../measure/height-range.js";
import type { Cloud } from "./ply-cloud.js";

interface Colouring {
  readonly colour: CloudColour;
  readonly range: HeightRange | undefined;
  readonly removed: Uint8Array | undefined;
}

const KEPT = [112, 124, 134] as const;
const REMOVED = [255, 96, 64] as const;
const NO_LUMINANCE = 200;

/** Red, green and blue of the points at these places of the cloud. */
export function cloudColours(cloud: Cloud, places: Uint32Array, { colour, range, removed }: Colouring): Uint8Array {
  const colours = new Uint8Array(3 * places.length);
  const [low, high] = [range?.low ?? 0, range?.high ?? 0];
  for (let at = 0; at < places.length; at++) {
    const place = places[at] as number;
    if (colour === "height") {
      const packed = viridis[paletteStep(cloud.positions[3 * place + 2] as number, low, high)] as number;
      colours[3 * at] = packed & 255;
      colours[3 * at + 1] = (packed >> 8) & 255;
      colours[3 * at + 2] = (packed >> 16) & 255;
    } else if (colour === "removed") {
      colours.set(removed?.[place] === 1 ? REMOVED : KEPT, 3 * at);
    } else {
      colours.fill(cloud.intensity?.[place] ?? NO_LUMINANCE, 3 * at, 3 * at + 3);
    }
  }
  return colours;
}
