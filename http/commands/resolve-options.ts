import type { OptionDeclarations, OptionValues } from "./command-options.js";

/** Wrong use of the command line, the environment or the configuration file. Its message is for the person who started the service. */
export class UsageError extends Error {
  override name = "UsageError";
}

export interface OptionSources {
  /** As given on the command line: texts, and true for a switch. */
  flags: Readonly<Record<string, string | true>>;
  environment: Readonly<Record<string, string | undefined>>;
  /** Reads and parses the configuration file. */
  readConfiguration(path: string): Promise<unknown>;
  /** Names of the options of all commands: an environment variable is unknown when none has it. */
  knownNames: ReadonlySet<string>;
  /** Takes a line about what was ignored. */
  warn(line: string): void;
}

const PREFIX = "INSPECTION_";

export function environmentName(option: string): string {
  return PREFIX + option.toUpperCase().replaceAll("-", "_");
}

/** What Docker links and Kubernetes set for a service called "inspection", in a variable that is ours too. */
const LINK_VALUE = /^(?:tcp|udp|sctp):\/\//;
const LINKED_OPTION = "port";
/** Of variables that no option has: an orchestrator sets seven for each of its services. */
const NAMES_SHOWN = 10;

/**
 * Each option from the first source that has it: command line, environment, configuration file, default.
 * @throws UsageError naming the option, where it stood and what is allowed
 */
export async function resolveOptions<Declarations extends OptionDeclarations>(
  declarations: Declarations,
  sources: OptionSources,
): Promise<OptionValues<Declarations>> {
  warnOfUnknownVariables(sources);
  const given = (name: string): { text: string; where: string } | undefined => {
    const flag = sources.flags[name];
    if (flag !== undefined) return { text: String(flag), where: `--${name}` };
    const variable = environmentName(name);
    const text = sources.environment[variable];
    if (text === undefined || text === "") return undefined;
    if (name === LINKED_OPTION && LINK_VALUE.test(text)) {
      sources.warn(
        `${variable} is ignored: ${JSON.stringify(text)} is what an orchestrator sets for a service of its own`,
      );
      return undefined;
    }
    return { text, where: variable };
  };
  const configPath = "config" in declarations ? given("config")?.text : undefined;
  const configuration = configPath === undefined ? {} : await readConfiguration(declarations, sources, configPath);
  const values: Record<string, unknown> = {};
  for (const [name, { parse, allowed, fallback }] of Object.entries(declarations)) {
    const source = given(name) ?? configuration[name];
    if (source === undefined) {
      values[name] = fallback;
      continue;
    }
    const value = parse(source.text);
    if (value === undefined) {
      throw new UsageError(`${source.where}: ${JSON.stringify(source.text)} is not allowed; it must be ${allowed}`);
    }
    values[name] = value;
  }
  return values as OptionValues<Declarations>;
}

/** Other programs and orchestrators have variables that begin as ours do: none of them stops a start. */
function warnOfUnknownVariables({ environment, knownNames, warn }: OptionSources): void {
  const known = new Set([...knownNames].map(environmentName));
  const unknown = Object.keys(environment)
    .filter((name) => name.startsWith(PREFIX) && !known.has(name))
    .sort();
  if (unknown.length === 0) return;
  const more = unknown.length > NAMES_SHOWN ? ` and ${unknown.length - NAMES_SHOWN} more` : "";
  warn(
    `ignored, since no option has such a name: ${unknown.slice(0, NAMES_SHOWN).join(", ")}${more} (--help lists all)`,
  );
}

async function readConfiguration(
  declarations: OptionDeclarations,
  sources: OptionSources,
  path: string,
): Promise<Record<string, { text: string; where: string }>> {
  const content = await sources.readConfiguration(path);
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new UsageError(`${path}: a configuration file must be a JSON object of options`);
  }
  const allowed = Object.keys(declarations).filter((name) => name !== "config");
  const configuration: Record<string, { text: string; where: string }> = {};
  for (const [name, value] of Object.entries(content)) {
    const where = `${path}, ${JSON.stringify(name)}`;
    if (!allowed.includes(name)) {
      throw new UsageError(`${where}: no option of this command has this name; known are ${allowed.join(", ")}`);
    }
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
      throw new UsageError(`${where}: must be a string, a number or a boolean, as on the command line`);
    }
    configuration[name] = { text: String(value), where };
  }
  return configuration;
}
