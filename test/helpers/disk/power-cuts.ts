import type { Random } from "../../../core/random.js";
import type { SimulatedDisk } from "./simulated-disk.js";

/** Power cuts that keep what they keep at random. */
const TEARS = 8;

export interface PowerCut {
  what: string;
  /** As it leaves the disk. */
  disk: SimulatedDisk;
}

/** Power cuts now, in each mode that the disk has. */
export function powerCuts(disk: SimulatedDisk, random: Random): PowerCut[] {
  return [
    { what: "drop", disk: disk.fork("drop", random) },
    { what: "keep", disk: disk.fork("keep", random) },
    ...Array.from({ length: TEARS }, (_, nth) => ({ what: `tear ${nth}`, disk: disk.fork("tear", random) })),
  ];
}

/**
 * Does something on the disk, and gives power cuts before each of its operations. None of them tears: a file system's
 * journal keeps a rename between folders as a whole, while this disk may keep one name's change without the other's.
 */
export async function powerCutsWithin<T>(
  disk: SimulatedDisk,
  random: Random,
  work: () => Promise<T>,
): Promise<{ result: T; cuts: PowerCut[] }> {
  const cuts: PowerCut[] = [];
  disk.onOperation = ({ kind, path, number }) => {
    for (const mode of ["drop", "keep"] as const)
      cuts.push({ what: `${mode} before operation ${number}, ${kind} of ${path}`, disk: disk.fork(mode, random) });
    return undefined;
  };
  const result = await work();
  disk.onOperation = () => undefined;
  return { result, cuts };
}
