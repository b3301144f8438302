/**
 * The key with which the service signs deliveries to webhooks of `signing: "ed25519"`. The file `webhook-signing-key.pem` of the data directory has
 * the private key (PKCS #8, RFC 8410), readable for its owner only. It is made when it is needed for the first time.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { ServiceError } from "../../core/service-errors.js";
import { isMissing } from "../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { readWholeFile, replaceFile } from "../../storage/disk/whole-files.js";

export const SIGNING_KEY_FILE = "webhook-signing-key.pem";

export interface SigningKeyOptions {
  fileSystem: FileSystem;
  /** The data directory. */
  directory: string;
  /** A new key was made. */
  onMade(): void;
}

export class SigningKey {
  readonly #options: SigningKeyOptions;
  #keys: { privatePem: string; publicPem: string } | null = null;
  #reading: Promise<void> | null = null;
  /** Why there is no key, as far as that is known. */
  #fault = "it is being read";

  constructor(options: SigningKeyOptions) {
    this.#options = options;
  }

  /** In PEM; null until `ensure` has resolved. */
  get privateKey(): string | null {
    return this.#keys?.privatePem ?? null;
  }

  /** In PEM (SPKI); null until `ensure` has resolved. */
  get publicKey(): string | null {
    return this.#keys?.publicPem ?? null;
  }

  /** Why deliveries cannot be signed, for people. */
  get fault(): string {
    return `the signing key cannot be used: ${this.#fault}`;
  }

  /** Reads the key, or makes it if there is none. Can be called again, also after a failure. @throws ServiceError unavailable */
  async ensure(): Promise<void> {
    if (this.#keys !== null) return;
    this.#reading ??= this.#readOrMake();
    try {
      await this.#reading;
    } catch (error) {
      this.#fault = error instanceof Error ? error.message : String(error);
      throw new ServiceError("unavailable", this.fault, {});
    } finally {
      this.#reading = null;
    }
  }

  async #readOrMake(): Promise<void> {
    const { fileSystem, directory, onMade } = this.#options;
    let text: string | undefined;
    try {
      text = Buffer.from(await readWholeFile(fileSystem, `${directory}/${SIGNING_KEY_FILE}`)).toString();
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    if (text !== undefined) {
      this.#keys = pemsOf(ed25519Key(text));
      return;
    }
    const keys = pemsOf(generateKeyPairSync("ed25519").privateKey);
    await replaceFile(fileSystem, directory, SIGNING_KEY_FILE, Buffer.from(keys.privatePem));
    this.#keys = keys;
    onMade();
  }
}

function ed25519Key(pem: string): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey(pem);
  } catch {
    // The cause may quote the key.
  }
  if (key?.asymmetricKeyType === "ed25519") return key;
  throw new Error(
    `${SIGNING_KEY_FILE} is no Ed25519 private key in PEM. Put the right file back; or delete it, so that a new key is made`,
  );
}

function pemsOf(privateKey: KeyObject): { privatePem: string; publicPem: string } {
  return {
    privatePem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicPem: createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString(),
  };
}
