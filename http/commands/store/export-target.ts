import { linkTarget } from "../../../storage/disk/file-system.js";
import { isMissing } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { UsageError } from "../resolve-options.js";

const INCOMPLETE = ".incomplete";

/** The folder that the export becomes, and the folder beside it in which it is first written. */
export interface ExportTarget {
  path: string;
  incompletePath: string;
}

/**
 * The target that `--to` names, after checking that a folder written beside it can take its place: there is nothing, or an empty folder
 * that a rename can replace.
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
      `--to: ${path} is a symbolic link to ${leadsTo}: name the folder itself, or one that does not exist yet`,
    );
  }
  const isThere = await isEmptyFolder(fileSystem, path);
  if (await fileSystem.exists(target.incompletePath)) {
    throw new UsageError(`--to: ${target.incompletePath} is left from an export that failed: remove it first`);
  }
  if (isThere) await assertReplaceable(fileSystem, target);
  return target;
}

/** The target of the symbolic link at the path; null if it is no link. */
function linkOf(path: string): string | null {
  try {
    return linkTarget(path);
  } catch {
    return null;
  }
}

/** False if the path does not exist. @throws UsageError if it is no folder, or not empty */
async function isEmptyFolder(fileSystem: FileSystem, path: string): Promise<boolean> {
  try {
    if ((await fileSystem.readDirectory(path)).length === 0) return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw new UsageError(`--to: ${(error as Error).message}`);
  }
  throw new UsageError(`--to: ${path} is not empty; nothing is overwritten`);
}

/** Tries it with an empty folder: a mount point, for example, looks like any other folder but cannot be replaced. */
async function assertReplaceable(fileSystem: FileSystem, { path, incompletePath }: ExportTarget): Promise<void> {
  const [target, current] = await Promise.all([fileSystem.statusOf(path), fileSystem.statusOf(".")]);
  if (target?.identity === current?.identity) {
    throw new UsageError(`--to: ${path} is the current folder: name a folder inside it`);
  }
  let isMade = false;
  try {
    isMade = await fileSystem.makeDirectory(incompletePath);
    await fileSystem.rename(incompletePath, path);
  } catch (error) {
    if (isMade) await fileSystem.removeDirectory(incompletePath);
    const reason = (error as Error).message;
    throw new UsageError(`--to: ${path} cannot be replaced (${reason}): name a folder that does not exist yet`);
  }
}
