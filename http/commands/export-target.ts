import { type FileSystem, isMissing, linkTarget } from "../../storage/disk/file-system.js";
import { UsageError } from "./resolve-options.js";

const INCOMPLETE = ".incomplete";

/** The folder that an export is to become, and the one beside it that it is written into. */
export interface ExportTarget {
  path: string;
  incompletePath: string;
}

/**
 * The target that `--to` names, once it is sure that a folder written beside it can take its place: nothing is there, or an empty folder
 * that a rename replaces.
 *
 * @throws UsageError
 */
export async function exportTarget(fileSystem: FileSystem, to: string): Promise<ExportTarget> {
  // A rename refuses a path that ends in a dot.
  const path = to.replace(/(?:\/\.?)+$/, "") || "/";
  const target = { path, incompletePath: `${path}${INCOMPLETE}` };
  const leadsTo = linkOf(path);
  if (leadsTo !== null) {
    throw new UsageError(
      `--to: ${path} is a symbolic link to ${leadsTo}: name a folder itself, or one that is not there yet`,
    );
  }
  const isThere = await isEmptyFolder(fileSystem, path);
  if (await fileSystem.exists(target.incompletePath)) {
    throw new UsageError(
      `--to: ${target.incompletePath} is there, what an earlier export left when it failed: remove it first`,
    );
  }
  if (isThere) await assertReplaceable(fileSystem, target);
  return target;
}

/** What the symbolic link at the path says; null where none is. */
function linkOf(path: string): string | null {
  try {
    return linkTarget(path);
  } catch {
    return null;
  }
}

/** False when nothing is there. */
async function isEmptyFolder(fileSystem: FileSystem, path: string): Promise<boolean> {
  try {
    if ((await fileSystem.readDirectory(path)).length === 0) return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw new UsageError(`--to: ${(error as Error).message}`);
  }
  throw new UsageError(`--to: ${path} is not empty; nothing is overwritten`);
}

/** By doing it, with an empty folder: a mount point, for one, looks like any other folder. */
async function assertReplaceable(fileSystem: FileSystem, { path, incompletePath }: ExportTarget): Promise<void> {
  const [target, current] = await Promise.all([fileSystem.statusOf(path), fileSystem.statusOf(".")]);
  if (target?.identity === current?.identity) {
    throw new UsageError(`--to: ${path} is the folder that this command was started in: name one within it`);
  }
  let isMade = false;
  try {
    isMade = await fileSystem.makeDirectory(incompletePath);
    await fileSystem.rename(incompletePath, path);
  } catch (error) {
    if (isMade) await fileSystem.removeDirectory(incompletePath);
    const reason = (error as Error).message;
    throw new UsageError(`--to: ${path} cannot be replaced (${reason}): name a folder that is not there yet`);
  }
}
