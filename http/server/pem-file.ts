import { X509Certificate } from "node:crypto";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { orWhereMissing } from "../../storage/disk/file-system-error.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";

/** The file does not exist, is not valid PEM, or lacks the wanted content. The message begins with its path. */
export class PemFileError extends Error {
  override name = "PemFileError";
}

export type PemContent = "certificate" | "private key";

/** A whole block: no other begins or ends within it. */
const BLOCK = /^-----BEGIN ([A-Z0-9 ]+)-----[ \t\r]*\n(?:(?!-----(?:BEGIN|END))[^\n]*\n)*-----END \1-----[ \t\r]*$/gm;

/**
 * The text of a PEM file (RFC 7468) with at least one `content`. All blocks must be complete and all certificates readable: OpenSSL would silently
 * ignore everything from the first damaged block on.
 *
 * @throws PemFileError, FileSystemError
 */
export async function readPemFile(path: string, content: PemContent): Promise<string> {
  const bytes = await orWhereMissing(readWholeFile(nodeFileSystem, path), null);
  if (bytes === null) throw new PemFileError(`${path} does not exist`);
  const text = new TextDecoder().decode(bytes);
  const lineAt = (position: number): number => text.slice(0, position).split("\n").length;
  const brokenAt = brokenEdge(text.replace(BLOCK, (block) => " ".repeat(block.length)));
  if (brokenAt >= 0) throw new PemFileError(`${path}: a PEM block is damaged or cut off, at line ${lineAt(brokenAt)}`);
  const blocks = [...text.matchAll(BLOCK)];
  const certificates = blocks.filter(([, label = ""]) => label.endsWith("CERTIFICATE"));
  for (const [at, { 0: block, index }] of certificates.entries()) {
    const fault = certificateFault(block);
    if (fault === undefined) continue;
    const which = `certificate ${at + 1} of ${certificates.length}, at line ${lineAt(index)}`;
    throw new PemFileError(`${path}: ${which}, cannot be read (${fault}): the file is damaged`);
  }
  const keys = blocks.filter(([, label = ""]) => label.endsWith("PRIVATE KEY"));
  const found = content === "certificate" ? certificates : keys;
  if (found.length === 0) throw new PemFileError(`${path} has no ${content} in PEM`);
  return text;
}

/** Where a line begins or ends a block, or the file is cut off in the first line of one; -1: nowhere. @param text without whole blocks */
function brokenEdge(text: string): number {
  const at = text.search(/^-----(?:BEGIN|END)/m);
  const last = text.lastIndexOf("\n") + 1;
  return at < 0 && last < text.length && "-----BEGIN".startsWith(text.slice(last)) ? last : at;
}

function certificateFault(block: string): string | undefined {
  try {
    new X509Certificate(block);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
