import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { whyNotRead } from "../../storage/disk/file-system-error.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { LOG_STREAM } from "../../workers/plant/log-message.js";
import { type PlantAddress, PlantClient } from "../../workers/plant/plant-client.js";
import type { PlantOptions } from "../../workers/plant/shipper-handle.js";
import type { PlantInitOptions, ServeOptions } from "./command-options.js";
import { printLine } from "./command-output.js";
import { UsageError } from "./resolve-options.js";

/** `plant init`: makes the plant's stream. Doing it again with the same settings changes nothing. */
export async function initPlant(options: PlantInitOptions): Promise<void> {
  const address = await plantAddress(options);
  if (address === null) throw new UsageError("--plant is required: the address of a NATS server");
  try {
    const client = await PlantClient.connect(address);
    try {
      await client.createLogStream(options.replicas);
    } finally {
      await client.close();
    }
  } catch (error) {
    throw new UsageError(`--plant ${address.servers.join(",")}: ${(error as Error).message}`);
  }
  printLine(`the stream ${LOG_STREAM} is there, with ${options.replicas} replicas`);
}

/** What the options of `serve` say of the plant; undefined without --plant. @throws UsageError for options that do not fit together */
export async function plantOptions(options: ServeOptions): Promise<PlantOptions | undefined> {
  const address = await plantAddress(options);
  if (address === null) {
    if (options.cell !== null) throw new UsageError("--cell needs --plant: the address of the plant's NATS servers");
    return undefined;
  }
  if (options.cell === null) throw new UsageError("--plant needs --cell: the name of this cell in the plant");
  return { cell: options.cell, address };
}

export async function plantAddress(
  options: Pick<PlantInitOptions, "plant" | "plant-credentials" | "plant-ca">,
): Promise<PlantAddress | null> {
  const { plant: servers, "plant-ca": caPath } = options;
  const credentials = await readText(options["plant-credentials"], "plant-credentials");
  await readText(caPath, "plant-ca");
  if (servers !== null) return { servers, credentials, caPath };
  if (credentials !== null) throw new UsageError("--plant-credentials needs --plant");
  if (caPath !== null) throw new UsageError("--plant-ca needs --plant");
  return null;
}

async function readText(path: string | null, option: string): Promise<string | null> {
  if (path === null) return null;
  try {
    return new TextDecoder().decode(await readWholeFile(nodeFileSystem, path));
  } catch (error) {
    throw new UsageError(`--${option}: ${whyNotRead(error)}`);
  }
}
