// The manual page, made from the command line's own help: each command with its options, as `--help` prints them.

/** Text for troff: its own marks escaped, so that a hyphen stays one that can be copied. */
function escaped(text) {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/gm, "\\&$1");
}

/** What `--help` prints after the options. */
function textAfterHelp(command) {
  let printed = "";
  command.configureOutput({ writeOut: (text) => (printed += text) });
  command.outputHelp();
  return printed.slice(command.helpInformation().length).trim();
}

/** A paragraph for each line, as in the help. */
function paragraphs(text) {
  return text.split("\n\n").flatMap((paragraph) => [".PP", escaped(paragraph.replaceAll("\n", " "))]);
}

function optionsOf(command) {
  return command.options.flatMap(({ long, flags, description }) => {
    const value = flags.slice(flags.indexOf(long) + long.length).trim();
    return [".TP", `\\fB${escaped(long)}\\fR${value === "" ? "" : ` \\fI${escaped(value)}\\fR`}`, escaped(description)];
  });
}

/** The commands that do something: those that have subcommands are only names before them. */
function leaves(command, names = []) {
  return command.commands.flatMap((below) => {
    const path = [...names, below.name()];
    return below.commands.length === 0 ? [{ name: path.join(" "), command: below }] : leaves(below, path);
  });
}

/** @param date as it stands at the foot of the page */
export function manPage(program, version, date) {
  const name = program.name();
  const commands = leaves(program);
  const lines = [
    `.TH ${name.toUpperCase()} 1 "${date}" "${name} ${version}"`,
    ".SH NAME",
    `${escaped(name)} \\- results of an inspection cell over HTTP, and to webhooks`,
    ".SH SYNOPSIS",
    ...commands.flatMap((command) => [`.B ${escaped(`${name} ${command.name}`)}`, "[\\fIoptions\\fR]", ".br"]),
    ".SH DESCRIPTION",
    escaped(program.description()),
    ".PP",
    "Each option can be set in three places; the first one counts: on the command line, in the environment variable that stands",
    escaped("behind it, or in a JSON file that --config names, where the command has it."),
    ".SH COMMANDS",
    ...commands.flatMap((leaf) => [
      `.SS ${escaped(leaf.name)}`,
      escaped(leaf.command.description()),
      ...optionsOf(leaf.command),
      ...paragraphs(textAfterHelp(leaf.command)),
    ]),
    ".SH FILES",
    ...[
      ["/etc/inspection-service/config.json", "options of the system's service"],
      ["/var/lib/inspection-service", "its data directory"],
      ["/run/inspection-service/cell.sock", "its socket for producers, who must be in the group inspection-producers"],
      ["/usr/share/doc/inspection-service", "guides"],
    ].flatMap(([path, what]) => [".TP", `.I ${escaped(path)}`, escaped(what)]),
    "",
  ];
  return lines.filter((line, at) => line !== "" || at === lines.length - 1).join("\n");
}
