import type { Test } from "tap";
import type { Front } from "../../../http/server/server-name.js";
import { findUws, PACKAGES, type UwsBuild } from "../../../http/server/uws-binary.js";
import { sized } from "../test-size.js";

/** A front that can be had on this machine and Node. */
export interface FrontHere {
  /** `uws 20.56.0`, `node`. */
  name: string;
  front: Front;
  uwsPackage?: string;
  uwsVersion?: string;
  /** The environment that makes a process serve on this front. */
  environment: Record<string, string>;
}

/** Every build of uWebSockets.js that loads here, the preferred one first. */
export const UWS_HERE: readonly UwsBuild[] = PACKAGES.map(({ name }) => findUws(name)).filter(
  (tried) => "uws" in tried,
);

/** Every one of them; then node:http. */
export const FRONTS_HERE: readonly FrontHere[] = [
  ...UWS_HERE.map(({ packageName, version }) => ({
    name: `uws ${version}`,
    front: "uws" as const,
    uwsPackage: packageName,
    uwsVersion: version,
    environment: { INSPECTION_FRONT: "uws", UWS_PACKAGE: packageName },
  })),
  { name: "node", front: "node", environment: { INSPECTION_FRONT: "node" } },
];

export const HAS_UWS = FRONTS_HERE.length > 1;

const told = new WeakSet<Test>();

/** Every front that can be had here; a test file in which uWebSockets.js is missing says so once, as a test that skips. */
export function frontsHere(t: Test): readonly FrontHere[] {
  if (!HAS_UWS && !told.has(t)) {
    told.add(t);
    t.test("on uWebSockets.js", { skip: "no build of it loads here" }, () => {});
  }
  return FRONTS_HERE;
}

/** In a commit's size the preferred front alone: for what is decided behind the fronts, which have tests of their own. */
export function someFronts(t: Test): readonly FrontHere[] {
  return frontsHere(t).slice(0, sized(1, FRONTS_HERE.length));
}
