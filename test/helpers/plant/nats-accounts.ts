import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";

type KeyPair = ReturnType<typeof nkeys.createUser>;

const NO_LIMITS = { subs: -1, data: -1, payload: -1 };
const ACCOUNT_LIMITS = {
  ...{ ...NO_LIMITS, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
  ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
};

/** A signed token, as `nsc` makes it (nats-io/jwt, version 2). */
function token(issuer: KeyPair, subject: KeyPair, name: string, nats: object): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = {
    jti: randomUUID(),
    iat: 1_700_000_000,
    iss: issuer.getPublicKey(),
    name,
    sub: subject.getPublicKey(),
  };
  const signed = `${encode({ typ: "JWT", alg: "ed25519-nkey" })}.${encode({ ...claims, nats: { version: 2, ...nats } })}`;
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString("base64url")}`;
}

/** An operator, an account for the plant, and its users. */
export class NatsAccounts {
  readonly #operator = nkeys.createOperator();
  readonly #system = nkeys.createAccount();
  readonly #account = nkeys.createAccount();

  /** Writes what `nsc generate config --mem-resolver` writes: a file for the servers to include. */
  writeConfiguration(path: string): void {
    const [operator, system, account] = [this.#operator, this.#system, this.#account];
    const systemKey = system.getPublicKey();
    const isSystem = { type: "account", limits: { ...ACCOUNT_LIMITS, disk_storage: 0, mem_storage: 0, streams: 0 } };
    const lines = [
      `operator: ${token(operator, operator, "plant", { type: "operator", system_account: systemKey })}`,
      `system_account: ${systemKey}`,
      "resolver: MEMORY",
      "resolver_preload: {",
      `  ${systemKey}: ${token(operator, system, "SYS", isSystem)}`,
      `  ${account.getPublicKey()}: ${token(operator, account, "cells", { type: "account", limits: ACCOUNT_LIMITS })}`,
      "}",
    ];
    writeFileSync(path, `${lines.join("\n")}\n`);
  }

  /** Writes the `.creds` file of a user who may publish these subjects, and subscribe to inboxes. */
  writeUser(folder: string, name: string, publish: readonly string[]): void {
    const user = nkeys.createUser();
    const permissions = { pub: { allow: publish }, sub: { allow: ["_INBOX.>"] } };
    const jwt = token(this.#account, user, name, { type: "user", ...permissions, ...NO_LIMITS });
    const seed = new TextDecoder().decode(user.getSeed());
    const section = (what: string, text: string) => `-----BEGIN ${what}-----\n${text}\n------END ${what}------\n`;
    writeFileSync(join(folder, `${name}.creds`), section("NATS USER JWT", jwt) + section("USER NKEY SEED", seed));
  }
}
