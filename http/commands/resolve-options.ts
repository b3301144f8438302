import type { OptionDeclarations, OptionValues } from "./option-kinds.js";

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
  /** Names of the options of all commands: an environment variable for any of them is known. */
  knownNames: ReadonlySet<string>;
  /** Takes a line about what was ignored. */
  warn(line: string): void;
}

const PREFIX = "INSPECTION_";

export function environmentName(option: string): string {
  return PREFIX + option.toUpperCase().replaceAll("-", "_");
}

/**
 * What Docker's links and Kubernetes set for a service called "inspection" in variables that are also those of options: INSPECTION_PORT, and
 * INSPECTION_NAME, as `/<container>/<alias>`.
 */
const LINK_VALUES: Readonly<Record<string, RegExp>> = {
  port: /^(?:tcp|udp|sctp):\/\//,
  name: /^\/[^/]+\/[^/]+$/,
};
/** How many unknown variables a warning names: an orchestrator sets seven for each of its services. */
const NAMES_SHOWN = 10;

/**
 * Each option from the first source that has it: command line, environment, configuration file, default.
 * @throws UsageError that names the option, where it was given and what is allowed
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
    if (LINK_VALUES[name]?.test(text)) {
      sources.warn(
        `${variable} is ignored: ${JSON.stringify(text)} was set by Docker or Kubernetes for another service`,
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
      throw new UsageError(
        `${source.where}: ${JSON.stringify(withoutPassword(source.text))} is not allowed; it must be ${allowed}`,
      );
    }
    values[name] = value;
  }
  return values as OptionValues<Declarations>;
}

/** Other programs and orchestrators set variables with our prefix: they only cause a warning. */
function warnOfUnknownVariables({ environment, knownNames, warn }: OptionSources): void {
  const known = new Set([...knownNames].map(environmentName));
  const unknown = Object.keys(environment)
    .filter((name) => name.startsWith(PREFIX) && !known.has(name))
    .sort();
  if (unknown.length === 0) return;
  const more = unknown.length > NAMES_SHOWN ? ` and ${unknown.length - NAMES_SHOWN} more` : "";
  warn(
    `ignored environment variables, as no option has such a name: ${unknown.slice(0, NAMES_SHOWN).join(", ")}${more} (--help lists all options)`,
  );
}

async function readConfiguration(
  declarations: OptionDeclarations,
  sources: OptionSources,
  path: string,
): Promise<Record<string, { text: string; where: string }>> {
  const content = await sources.readConfiguration(path);
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new UsageError(`${path}: the configuration file must be a JSON object of options`);
  }
  const allowed = Object.keys(declarations).filter((name) => name !== "config");
  const configuration: Record<string, { text: string; where: string }> = {};
  for (const [name, value] of Object.entries(content)) {
    const where = `${path}, ${JSON.stringify(name)}`;
    if (!allowed.includes(name)) {
      throw new UsageError(`${where}: this command has no such option; it has ${allowed.join(", ")}`);
    }
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
      throw new UsageError(`${where}: the value must be a string, a number or a boolean`);
    }
    configuration[name] = { text: String(value), where };
  }
  return configuration;
}

/** An address may hold a password, and error messages end up in logs. */
function withoutPassword(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?[^/:]*:(?!\/\/).*@/i, "$1***@");
}
