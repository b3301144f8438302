import { counted } from "../../core/counted.js";
import { wallClockUs } from "../../core/service-clock.js";
import { viewDataDirectory } from "../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { FileSystemError, whyNotRead } from "../../storage/disk/file-system-error.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { StorageError } from "../../storage/storage-error.js";
import { LogTail } from "../../workers/plant/log-tail.js";
import { type PlantAddress, PlantClient } from "../../workers/plant/plant-client.js";
import { restoreStore } from "../../workers/plant/restore/restore-store.js";
import { removeRestoredNote } from "../../workers/plant/restore/restored-note.js";
import type { PlantOptions } from "../../workers/plant/shipper-handle.js";
import { type Difference, verifyPlant } from "../../workers/plant/verify-plant.js";
import type { PlantInitOptions, PlantRestoreOptions, PlantVerifyOptions, ServeOptions } from "./command-options.js";
import { printLine } from "./command-output.js";
import { UsageError } from "./resolve-options.js";

/** `plant init`: makes the plant's streams. Doing it again with the same settings changes nothing. */
export async function initPlant(options: PlantInitOptions): Promise<void> {
  const { replicas, "capture-days": captureDays, "capture-bytes": captureBytes } = options;
  const address = await requiredAddress(options);
  if (captureDays === null && captureBytes === null)
    throw new UsageError(
      "--capture-days or --capture-bytes must be set: without a limit, captures fill the plant's disks",
    );
  const made = await withPlant(address, (client) => client.createStreams({ replicas, captureDays, captureBytes }));
  for (const { name, isNew } of made) printLine(`${name}: ${isNew ? "made" : "there already, as asked for"}`);
}

/** `plant verify`: @returns false if the plant lacks something, or has something else */
export async function verify(options: PlantVerifyOptions): Promise<boolean> {
  const address = await requiredAddress(options);
  const { storeId, metaPath } = await viewDataDirectory(nodeFileSystem, options.data);
  if (storeId === null)
    throw new UsageError(`--data: the store in ${options.data} has no id yet, so the plant has nothing of it`);
  const tail = new LogTail({ fileSystem: nodeFileSystem, directory: metaPath });
  const onDifference = ({ code, message }: Difference) => printLine(`${code}: ${message}`);
  const result = await withPlant(address, (plant) => verifyPlant({ plant, storeId, tail, onDifference }));
  const { cell, messages, records, differences, underWay } = result;
  const of = cell === null ? "the plant has no message of this store" : `cell ${cell}: ${counted(messages, "message")}`;
  const later = underWay === 0 ? "" : `, ${counted(underWay, "new record")} under way`;
  printLine(`${of}, ${counted(records, "record")} the same${later}, ${counted(differences, "difference")}`);
  printLine(differences === 0 ? "ok" : "DIFFERENT");
  return differences === 0;
}

/** `plant restore`: makes a cell's store anew; with --acknowledge it only removes the note of it. @returns false if there was none */
export async function restore(options: PlantRestoreOptions): Promise<boolean> {
  const { data, cell, acknowledge } = options;
  if (acknowledge) {
    const { path } = await viewDataDirectory(nodeFileSystem, data);
    const wasThere = await removeRestoredNote(nodeFileSystem, path);
    printLine(wasThere ? "acknowledged" : `there is nothing to acknowledge in ${path}`);
    return wasThere;
  }
  const address = await requiredAddress(options);
  if (cell === null) throw new UsageError("--cell is required: the name of the cell in the plant");
  const path = data.length > 1 ? data.replace(/\/+$/, "") : data;
  process.umask(0o077);
  const restored = await withPlant(address, (plant) =>
    restoreStore({ plant, cell, path, fileSystem: nodeFileSystem, wallUs: wallClockUs }),
  );
  const { storeId, records, captureFiles, captureBytes, runsWithoutCaptures, runsWithoutReports, failedRuns, message } =
    restored;
  printLine(
    `store ${storeId} of cell ${cell}: ${counted(records, "record")}, ${counted(captureFiles, "file")} of captures, ${captureBytes} bytes`,
  );
  printLine(
    `not in the plant: captures of ${counted(runsWithoutCaptures, "run")}, reports of ${counted(runsWithoutReports, "run")}; ` +
      `failed because of it: ${counted(failedRuns, "run")}`,
  );
  printLine(message);
  return true;
}

/** Uses a client and closes it. @throws UsageError with one line, whatever goes wrong at the plant */
async function withPlant<T>(address: PlantAddress, use: (client: PlantClient) => Promise<T>): Promise<T> {
  let client: PlantClient | undefined;
  try {
    client = await PlantClient.connect(address);
    return await use(client);
  } catch (error) {
    if (error instanceof StorageError || error instanceof FileSystemError) throw error;
    throw new UsageError(`--plant: ${(error as Error).message}`);
  } finally {
    await client?.close();
  }
}

async function requiredAddress(options: Parameters<typeof plantAddress>[0]): Promise<PlantAddress> {
  const address = await plantAddress(options);
  if (address === null) throw new UsageError("--plant is required: the address of a NATS server");
  return address;
}

/** What the options of `serve` say of the plant; undefined without --plant. @throws UsageError for options that do not fit together */
export async function plantOptions(options: ServeOptions): Promise<PlantOptions | undefined> {
  const address = await plantAddress(options);
  if (options["retain-after-shipping"] && (address === null || options["plant-captures"] !== "all")) {
    throw new UsageError(
      "--retain-after-shipping needs --plant and --plant-captures all: else the plant never gets them",
    );
  }
  if (address === null) {
    for (const name of ["cell", "plant-rate-bytes", "public-url"] as const) {
      if (options[name] !== null)
        throw new UsageError(`--${name} needs --plant: the address of the plant's NATS servers`);
    }
    return undefined;
  }
  if (options.cell === null) throw new UsageError("--plant needs --cell: the name of this cell in the plant");
  const { cell, "plant-captures": captures, "plant-rate-bytes": rateBytes, "public-url": publicUrl } = options;
  return { cell, address, captures, rateBytes, publicUrl };
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
