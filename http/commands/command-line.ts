import { Command } from "commander";
import { descriptorLimit, nodeFileSystem, readWholeFile } from "../../storage/disk/file-system.js";
import { sayOnStandardError } from "../log/standard-error.js";
import { SERVICE_VERSION } from "../service/service-version.js";
import {
  CHECK_OPTIONS,
  DEMO_OPTIONS,
  EXPORT_OPTIONS,
  INSPECT_OPTIONS,
  KEYS_ADD_OPTIONS,
  KEYS_LIST_OPTIONS,
  KEYS_REMOVE_OPTIONS,
  type OptionDeclarations,
  type OptionValues,
  PRODUCERS_LIST_OPTIONS,
  PRODUCERS_REMOVE_OPTIONS,
  SERVE_OPTIONS,
} from "./command-options.js";
import { OutputError, print } from "./command-output.js";
import { environmentName, type OptionSources, resolveOptions, UsageError } from "./resolve-options.js";

const KNOWN_NAMES = new Set(
  [
    ...[SERVE_OPTIONS, DEMO_OPTIONS, CHECK_OPTIONS, INSPECT_OPTIONS, EXPORT_OPTIONS],
    ...[KEYS_ADD_OPTIONS, KEYS_LIST_OPTIONS, KEYS_REMOVE_OPTIONS, PRODUCERS_LIST_OPTIONS, PRODUCERS_REMOVE_OPTIONS],
  ].flatMap((options) => Object.keys(options)),
);

/** Each loaded when it is asked for: `check` needs neither the servers nor the pool, whose modules take longer to load than a small store to read. */
const COMMANDS = {
  async serve() {
    requireDescriptors();
    return (await import("./serve-command.js")).serve;
  },
  async demo() {
    requireDescriptors();
    return (await import("../demo/demo-command.js")).demo;
  },
  check: async () => warning((await import("./store-commands.js")).check),
  inspect: async () => warning((await import("./store-commands.js")).inspect),
  exportRun: async () => warning((await import("./export-command.js")).exportRun),
  addKey: async () => warning((await import("./keys-command.js")).addKey),
  listKeys: async () => warning((await import("./keys-command.js")).listKeys),
  removeKey: async () => warning((await import("./keys-command.js")).removeKey),
  listProducers: async () => warning((await import("./producers-command.js")).listProducers),
  removeProducer: async () => warning((await import("./producers-command.js")).removeProducer),
};

/** With the warnings on stderr, where the service has its log. */
function warning<Options, Outcome>(run: (options: Options) => Promise<Outcome>) {
  return (options: Options, warnings: readonly string[]): Promise<Outcome> => {
    for (const line of warnings) sayOnStandardError(`inspection-service: ${line}\n`);
    return run(options);
  };
}

/** Loading the service takes some 80 of them at a time, serving some 40 beside files and connections. */
const LEAST_DESCRIPTORS = 128;

function requireDescriptors(): void {
  const limit = descriptorLimit();
  if (limit === null || limit >= LEAST_DESCRIPTORS) return;
  throw new UsageError(
    `this process may have ${limit} files and connections open at a time, and the service needs ${LEAST_DESCRIPTORS}: raise the limit ` +
      "(ulimit -n, or LimitNOFILE= of the unit)",
  );
}

/** The command line of decisions.md. An action resolves with the process's exit code. */
export function commandLine(): Command {
  const program = new Command("inspection-service")
    .description("Keeps, serves and pushes what the inspection cell produced.")
    .version(SERVICE_VERSION)
    .showHelpAfterError("(--help lists all options)")
    // Subcommands take it over.
    .configureOutput({ writeOut: printOrExit, writeErr: sayOnStandardError });
  addCommand(
    program,
    "serve",
    "serve the data directory over HTTP and take producers in",
    SERVE_OPTIONS,
    COMMANDS.serve,
  );
  addCommand(
    program,
    "demo",
    "serve, beside a cell that produces runs over the cell link",
    DEMO_OPTIONS,
    COMMANDS.demo,
  );
  addCommand(
    program,
    "check",
    "verify every byte of a store; exit 1 if anything is wrong",
    CHECK_OPTIONS,
    COMMANDS.check,
  ).addHelpText(
    "after",
    "\nExit codes: 0 nothing durable is damaged or missing, 1 something is, or the store could not be checked at all, also for wrong use. " +
      "What a crash leaves behind\n(a torn tail, files that nothing names) is listed and is no damage. Progress of a long check goes to stderr.",
  );
  addCommand(
    program,
    "inspect",
    "print the records of a store as JSON lines",
    INSPECT_OPTIONS,
    COMMANDS.inspect,
  ).addHelpText(
    "after",
    "\nExit codes: 0, or 1 when the record that was asked for is not there, or the disk does not give all that was. A record that cannot be" +
      "\ndecoded has an `error`; damage to the log stands behind the records as findings, and behind them what the disk does not give.",
  );
  addCommand(program, "export", "write a run of a store as plain files", EXPORT_OPTIONS, COMMANDS.exportRun);
  const keys = program.command("keys").description("make, list and remove API keys");
  addCommand(keys, "add", "make a key: it is printed once, and kept as a hash", KEYS_ADD_OPTIONS, COMMANDS.addKey);
  addCommand(keys, "list", "print the keys' ids, scopes and dates", KEYS_LIST_OPTIONS, COMMANDS.listKeys);
  addCommand(
    keys,
    "remove",
    "remove a key; a running service refuses it within seconds",
    KEYS_REMOVE_OPTIONS,
    COMMANDS.removeKey,
  );
  const producers = program
    .command("producers")
    .description("list and remove producer names of a store that is not served");
  addCommand(
    producers,
    "list",
    "print each name, its last number and when it was last used, longest unused first",
    PRODUCERS_LIST_OPTIONS,
    COMMANDS.listProducers,
  );
  addCommand(
    producers,
    "remove",
    "forget a name: what is stored stays, its numbers begin anew",
    PRODUCERS_REMOVE_OPTIONS,
    COMMANDS.removeProducer,
  );
  return program;
}

/** For commander, which ends the process by itself behind it. */
function printOrExit(text: string): void {
  try {
    print(text);
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    if (!error.isReaderGone) sayOnStandardError(`inspection-service: ${error.message}\n`);
    process.exit(1);
  }
}

function addCommand<Declarations extends OptionDeclarations>(
  program: Command,
  name: string,
  description: string,
  declarations: Declarations,
  // biome-ignore lint/suspicious/noConfusingVoidType: an action without an outcome returns nothing
  load: () => Promise<(options: OptionValues<Declarations>, warnings: readonly string[]) => Promise<boolean | void>>,
): Command {
  const command = program.command(name).description(description);
  // Names by the keys that commander gives them: --base-url comes as baseUrl.
  const nameOfKey = new Map<string, string>();
  for (const [option, { placeholder, description: text, shownFallback }] of Object.entries(declarations)) {
    const notes = [environmentName(option), ...(shownFallback === undefined ? [] : [`default ${shownFallback}`])];
    command.option(`--${option}${placeholder === undefined ? "" : ` ${placeholder}`}`, `${text} [${notes.join("; ")}]`);
    nameOfKey.set(
      option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      option,
    );
  }
  command.action(async (given: Record<string, string | true>) => {
    const flags: Record<string, string | true> = {};
    for (const [key, value] of Object.entries(given)) flags[nameOfKey.get(key) ?? key] = value;
    const warnings: string[] = [];
    const sources: OptionSources = {
      flags,
      environment: process.env,
      readConfiguration,
      knownNames: KNOWN_NAMES,
      warn: (line) => warnings.push(line),
    };
    const values = await resolveOptions(declarations, sources);
    const run = await load();
    const outcome = await run(values, warnings);
    if (outcome === false) process.exitCode = 1;
  });
  return command;
}

async function readConfiguration(path: string): Promise<unknown> {
  let text: string;
  try {
    text = new TextDecoder().decode(await readWholeFile(nodeFileSystem, path));
  } catch (error) {
    throw new UsageError(`--config: ${(error as Error).message}`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--config: ${path} is not JSON: ${(error as Error).message}`);
  }
}
