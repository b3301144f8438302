/** `node --import <this> …`: the process runs with the change that MUTANT holds as JSON. */
import { register } from "node:module";
import type { ReportedChange } from "./mutant-hooks.js";

const change = JSON.parse(process.env.MUTANT ?? "null") as ReportedChange | null;
if (change !== null) register(new URL("./mutant-hooks.js", import.meta.url), { data: change });
