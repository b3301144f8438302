import { whyNotRead } from "../../storage/disk/file-system-error.js";
import { createKey } from "../requests/api-keys.js";
import { changeKeyFile, readKeyFile } from "../requests/key-file.js";
import type { KeysAddOptions, KeysListOptions, KeysRemoveOptions } from "./command-options.js";
import { printLine } from "./command-output.js";
import { UsageError } from "./resolve-options.js";

/** `keys add`: prints the key. It is never shown again. */
export async function addKey({ file, scope, name }: KeysAddOptions): Promise<void> {
  const { key, stored } = createKey(scope, new Date().toISOString(), name);
  const path = needed(file, "file");
  await told(changeKeyFile(path, "createIfMissing", (keys) => [...keys, stored]));
  try {
    printLine(key);
  } catch (error) {
    // Nobody has seen the key, so nobody can use it.
    await told(changeKeyFile(path, "mustExist", (keys) => keys.filter((one) => one.id !== stored.id)));
    throw error;
  }
}

/** `keys list`: one key a line, its name last. */
export async function listKeys({ file }: KeysListOptions): Promise<void> {
  for (const { id, name, scope, created_at } of await told(readKeyFile(needed(file, "file")))) {
    printLine(`${id} ${scope} ${created_at}${name === null ? "" : ` ${name}`}`);
  }
}

/** `keys remove`. */
export async function removeKey({ file, id }: KeysRemoveOptions): Promise<void> {
  const path = needed(file, "file");
  const keyId = needed(id, "id");
  await told(
    changeKeyFile(path, "mustExist", (keys) => {
      const rest = keys.filter((one) => one.id !== keyId);
      if (rest.length === keys.length) throw new UsageError(`--id: ${path} has no key ${keyId}`);
      return rest;
    }),
  );
}

function needed(value: string | null, option: "file" | "id"): string {
  if (value === null)
    throw new UsageError(
      `--${option} is required: ${option === "file" ? "the file of the API keys" : "the id of the key to remove"}`,
    );
  return value;
}

/** Errors of the key file become usage errors: the caller named the file. */
async function told<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--file: ${whyNotRead(error)}`);
  }
}
