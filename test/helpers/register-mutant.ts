/** `node --import <this> …`: the process runs with the change that MUTANT holds as JSON. */
import { register } from "node:module";
import type { SourceChange } from "./store-mutants.js";

const change = JSON.parse(process.env.MUTANT ?? "null") as SourceChange | null;
if (change !== null) register(new URL("./mutant-hooks.js", import.meta.url), { data: change });
