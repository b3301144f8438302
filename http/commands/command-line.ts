import { Command } from "commander";
import { descriptorLimit, nodeFileSystem } from "../../storage/disk/file-system.js";
import { whyNotRead } from "../../storage/disk/file-system-error.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { sayOnStandardError } from "../log/standard-error.js";
import { SERVICE_VERSION } from "../service/service-version.js";
import {
  BACKUP_OPTIONS,
  CHECK_OPTIONS,
  DEMO_OPTIONS,
  DEMO_PLANT_OPTIONS,
  EXPORT_OPTIONS,
  HUB_OPTIONS,
  INSPECT_OPTIONS,
  KEYS_ADD_OPTIONS,
  KEYS_LIST_OPTIONS,
  KEYS_REMOVE_OPTIONS,
  LISTEN_OPTIONS,
  PLANT_INIT_OPTIONS,
  PLANT_RESTORE_OPTIONS,
  PLANT_VERIFY_OPTIONS,
  PRODUCERS_LIST_OPTIONS,
  PRODUCERS_REMOVE_OPTIONS,
  REPORT_OPTIONS,
  SERVE_OPTIONS,
} from "./command-options.js";
import { OutputError, print } from "./command-output.js";
import type { OptionDeclarations, OptionValues } from "./option-kinds.js";
import { environmentName, type OptionSources, resolveOptions, UsageError } from "./resolve-options.js";

/** Names of the options of all commands. */
const KNOWN_NAMES = new Set<string>();

/** Prints the warnings on stderr first. `serve` and `demo` write theirs to the log instead. */
function warning<Options, Outcome>(run: (options: Options) => Promise<Outcome>) {
  return (options: Options, warnings: readonly string[]): Promise<Outcome> => {
    for (const line of warnings) sayOnStandardError(`inspection-service: ${line}\n`);
    return run(options);
  };
}

/** Loading the service has some 80 files open at a time; serving has some 40, plus stored files and connections. */
const LEAST_DESCRIPTORS = 128;

function requireDescriptors(): void {
  const limit = descriptorLimit();
  if (limit === null || limit >= LEAST_DESCRIPTORS) return;
  throw new UsageError(
    `this process may have ${limit} files and connections open, but the service needs at least ${LEAST_DESCRIPTORS}: raise the limit ` +
      "with ulimit -n, or with LimitNOFILE= in the systemd unit",
  );
}

/** The command line. An action resolves with the process's exit code. */
export function commandLine(): Command {
  const program = new Command("inspection-service")
    .description("Stores the results of an inspection cell, serves them over HTTP and sends them to webhooks.")
    .version(SERVICE_VERSION)
    // Subcommands inherit it.
    .configureOutput({ writeOut: printOrExit, writeErr: sayOnStandardError, outputError: sayWrongUse });
  addServingCommands(program);
  addStoreCommands(program);
  addReportCommand(program);
  addKeyCommands(program.command("keys").description("add, list and remove API keys"));
  addProducerCommands(
    program.command("producers").description("list and remove the producer names of a store that is not being served"),
  );
  addPlantCommands(
    program.command("plant").description("the plant's NATS JetStream: prepare it, and compare a store with it"),
  );
  return program;
}

function addServingCommands(program: Command): void {
  addCommand(
    program,
    "serve",
    "serve a data directory over HTTP and accept producers over the cell link",
    SERVE_OPTIONS,
    async () => {
      requireDescriptors();
      return (await import("./serve-command.js")).serve;
    },
  );
  addCommand(
    program,
    "hub",
    "serve the runs of all cells of a plant, read from its JetStream",
    HUB_OPTIONS,
    async () => {
      requireDescriptors();
      return (await import("../hub/hub-command.js")).hub;
    },
  );
  addCommand(program, "demo", "serve, together with a demo cell that produces runs", DEMO_OPTIONS, async () => {
    requireDescriptors();
    return (await import("../demo/demo-command.js")).demo;
  });
  addCommand(
    program,
    "demo-plant",
    "run a plant for a demo: a NATS server, three demo cells and a hub",
    DEMO_PLANT_OPTIONS,
    async () => warning((await import("../demo/plant/demo-plant-command.js")).demoPlant),
  );
  addCommand(
    program,
    "listen",
    "receive webhooks while you develop: verify each event, print it and answer",
    LISTEN_OPTIONS,
    async () => warning((await import("./listen-command.js")).listen),
  );
}

function addStoreCommands(program: Command): void {
  addCommand(program, "check", "verify every byte of a store; exit 1 if anything is wrong", CHECK_OPTIONS, async () =>
    warning((await import("./store/store-commands.js")).check),
  ).addHelpText(
    "after",
    "\nExit codes: 0 if nothing durable is damaged or missing; 1 if something is, if the store cannot be checked, or if an option is wrong.\n" +
      "What a crash leaves behind (a torn tail, files that no record names) is listed, but is no damage. Progress of a long check goes to stderr.",
  );
  addCommand(
    program,
    "backup",
    "copy a store, also while it is served; a second call copies what is new",
    BACKUP_OPTIONS,
    async () => warning((await import("./store/backup-command.js")).backup),
  ).addHelpText(
    "after",
    "\nExit codes: 0 if the backup is complete and check finds no damage in it; else 1. Then the folder is as it was, except with --with-damage.\n" +
      "While it is made, the folders <to>.incomplete and <to>.previous stand beside it.",
  );
  addCommand(program, "inspect", "print the records of a store as JSON lines", INSPECT_OPTIONS, async () =>
    warning((await import("./store/store-commands.js")).inspect),
  ).addHelpText(
    "after",
    "\nExit codes: 0; or 1 if the requested record does not exist, or if the disk cannot read all of the log. A record that cannot be\n" +
      "decoded has an `error`. Damage to the log is printed after the records, and what the disk cannot read after that.",
  );
  addCommand(program, "export", "write one run of a store as plain files", EXPORT_OPTIONS, async () =>
    warning((await import("./store/export-command.js")).exportRun),
  ).addHelpText(
    "after",
    "\nExit codes: 0 if the run was written whole; else 1. If parts of the run may be lost, what is left is written, and\n" +
      "`incomplete.json` in its folder says what is missing.",
  );
}

function addReportCommand(program: Command): void {
  addCommand(program, "report", "write one HTML page about a run, for paper", REPORT_OPTIONS, async () =>
    warning((await import("./store/report-command.js")).reportRun),
  ).addHelpText(
    "after",
    "\nExit codes: 0 if the page shows all of the run; 1 if there is no page, or if parts of the run may be lost or damaged: the page then says so.",
  );
}

function addKeyCommands(keys: Command): void {
  addCommand(keys, "add", "create a key; it is printed once, and only its hash is kept", KEYS_ADD_OPTIONS, async () =>
    warning((await import("./keys-command.js")).addKey),
  );
  addCommand(keys, "list", "print the keys' ids, scopes and dates", KEYS_LIST_OPTIONS, async () =>
    warning((await import("./keys-command.js")).listKeys),
  );
  addCommand(
    keys,
    "remove",
    "remove a key; a running service refuses it within seconds",
    KEYS_REMOVE_OPTIONS,
    async () => warning((await import("./keys-command.js")).removeKey),
  );
}

function addProducerCommands(producers: Command): void {
  addCommand(
    producers,
    "list",
    "print each name, its last sequence number and when it was last used, longest unused first",
    PRODUCERS_LIST_OPTIONS,
    async () => warning((await import("./producers-command.js")).listProducers),
  );
  addCommand(
    producers,
    "remove",
    "forget a name; its results stay stored, and its sequence numbers start again",
    PRODUCERS_REMOVE_OPTIONS,
    async () => warning((await import("./producers-command.js")).removeProducer),
  );
}

function addPlantCommands(plant: Command): void {
  addCommand(
    plant,
    "init",
    "make the streams that take the logs and captures of all cells",
    PLANT_INIT_OPTIONS,
    async () => warning((await import("./plant-command.js")).initPlant),
  );
  addCommand(
    plant,
    "verify",
    "compare the log of a store with what the plant has of it; exit 1 if anything is missing or different",
    PLANT_VERIFY_OPTIONS,
    async () => warning((await import("./plant-command.js")).verify),
  );
  addCommand(
    plant,
    "restore",
    "make the store of a cell anew from what the plant has; --acknowledge ends the warning in health",
    PLANT_RESTORE_OPTIONS,
    async () => warning((await import("./plant-command.js")).restore),
  );
}

/** Gives commander's errors the form of all others: one line. */
function sayWrongUse(text: string): void {
  const message = text
    .trim()
    .replace(/^error: /, "")
    .replaceAll("\n", " ");
  sayOnStandardError(`inspection-service: ${message} (--help lists all commands and options)\n`);
}

/** For commander, which ends the process itself after the output. */
function printOrExit(text: string): void {
  try {
    print(text);
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    if (!error.isReaderGone) sayOnStandardError(`inspection-service: ${error.message}\n`);
    process.exit(1);
  }
}

/**
 * @param load loads the modules of the command alone: the servers and the pool, which `check` does not need, take longer to load than a small store
 *   takes to read
 */
function addCommand<Declarations extends OptionDeclarations>(
  program: Command,
  name: string,
  description: string,
  declarations: Declarations,
  // biome-ignore lint/suspicious/noConfusingVoidType: an action without an outcome returns nothing
  load: () => Promise<(options: OptionValues<Declarations>, warnings: readonly string[]) => Promise<boolean | void>>,
): Command {
  const command = program.command(name).description(description);
  // commander gives options in camel case: --base-url comes as baseUrl.
  const nameOfKey = new Map<string, string>();
  for (const [option, { placeholder, description: text, shownFallback }] of Object.entries(declarations)) {
    const notes = [environmentName(option), ...(shownFallback === undefined ? [] : [`default ${shownFallback}`])];
    command.option(`--${option}${placeholder === undefined ? "" : ` ${placeholder}`}`, `${text} [${notes.join("; ")}]`);
    KNOWN_NAMES.add(option);
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
    throw new UsageError(`--config: ${whyNotRead(error)}`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--config: ${path} is not JSON: ${(error as Error).message}`);
  }
}
