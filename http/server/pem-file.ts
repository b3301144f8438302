import { X509Certificate } from "node:crypto";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";

/** The file is not valid PEM, or lacks the wanted content. The message begins with its path. */
export class PemFileError extends Error {
  override name = "PemFileError";
}

export type PemContent = "certificate" | "private key";

interface PemBlock {
  /** Such as `CERTIFICATE`. */
  label: string;
  /** Counted from 1. */
  line: number;
  text: string;
}

/**
 * The text of a PEM file (RFC 7468) with at least one `content`. All blocks must be complete and all certificates readable: OpenSSL would silently
 * ignore everything from the first damaged block on.
 *
 * @throws PemFileError, FileSystemError
 */
export async function readPemFile(path: string, content: PemContent): Promise<string> {
  const text = new TextDecoder().decode(await readWholeFile(nodeFileSystem, path));
  const blocks = pemBlocks(path, text);
  const certificates = blocks.filter(({ label }) => label.endsWith("CERTIFICATE"));
  for (const [at, { line, text: block }] of certificates.entries()) {
    const fault = certificateFault(block);
    if (fault === undefined) continue;
    const which = `certificate ${at + 1} of ${certificates.length}, at line ${line}`;
    throw new PemFileError(`${path}: ${which}, cannot be read (${fault}): the file is damaged`);
  }
  const found = content === "certificate" ? certificates : blocks.filter(({ label }) => label.endsWith("PRIVATE KEY"));
  if (found.length === 0) throw new PemFileError(`${path} has no ${content} in PEM`);
  return text;
}

const EDGE = /^-----(BEGIN|END) ([A-Z0-9 ]+)-----\s*$/;
const BROKEN_EDGE = /^-----(BEGIN|END)/;

function pemBlocks(path: string, text: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  const lines = text.split("\n");
  let begun: { label: string; line: number } | undefined;
  const fault = (what: string): PemFileError => {
    const { label = "", line = 0 } = begun ?? {};
    const nth = blocks.filter((block) => block.label === label).length + 1;
    const which = begun === undefined ? "" : `${label.toLowerCase()} ${nth}, at line ${line}, `;
    return new PemFileError(`${path}: ${which}${what}: the file is damaged or cut off`);
  };
  for (const [at, content] of lines.entries()) {
    const [, kind, label = ""] = EDGE.exec(content) ?? [];
    if (kind === "BEGIN") {
      if (begun !== undefined) throw fault(`has no END line before the BEGIN at line ${at + 1}`);
      begun = { label, line: at + 1 };
    } else if (kind === "END") {
      if (begun === undefined) throw fault(`line ${at + 1} is the END of a ${label.toLowerCase()} without a BEGIN`);
      if (begun.label !== label) throw fault(`ends as a ${label.toLowerCase()}`);
      blocks.push({ ...begun, text: lines.slice(begun.line - 1, at + 1).join("\n") });
      begun = undefined;
    } else if (BROKEN_EDGE.test(content) || (at === lines.length - 1 && isCutEdge(content))) {
      throw fault(`line ${at + 1} is a part of a BEGIN or END line`);
    }
  }
  if (begun !== undefined) throw fault("has no END line");
  return blocks;
}

/** Whether the last line of the file is the start of a BEGIN line: then the file was cut off. */
function isCutEdge(content: string): boolean {
  return content !== "" && "-----BEGIN".startsWith(content);
}

function certificateFault(block: string): string | undefined {
  try {
    new X509Certificate(block);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
