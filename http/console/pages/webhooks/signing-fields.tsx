/** What signs the deliveries of a webhook. */
import { useState } from "preact/hooks";
import type { SigningKey, Webhook } from "../../data/api.js";
import { useResource } from "../../data/resource.js";
import { Loaded } from "../../ui/states.js";
import { type Faults, Field } from "./form-fields.js";

interface SigningFieldsProps {
  webhook: Webhook | undefined;
  faults: Faults;
}

export function SigningFields({ webhook, faults }: SigningFieldsProps) {
  const [signing, setSigning] = useState<string>(webhook?.signing ?? "hmac");
  const hasSecret = webhook?.has_secret === true;
  return (
    <>
      <label>
        Signature
        <select name="signing" value={signing} onChange={(event) => setSigning(event.currentTarget.value)}>
          <option value="hmac">HMAC</option>
          <option value="ed25519">Ed25519</option>
        </select>
      </label>
      {(signing === "hmac" || hasSecret) && (
        <Field
          name="secret"
          label={
            hasSecret
              ? "New secret (empty: stays as it is; the old one signs too for a day)"
              : "Secret (empty: not signed)"
          }
          attributes={{ type: "password", autocomplete: "new-password" }}
          faults={faults}
        />
      )}
      {/* The receiver may need it before it is saved. Once it is saved, the page shows it. */}
      {signing === "ed25519" && webhook?.signing !== "ed25519" && webhook?.cell === undefined && <PublicKey />}
    </>
  );
}

/** The public key in fields from which it is copied. A button could not: browsers give the clipboard to secure pages only. */
export function PublicKey() {
  const key = useResource<SigningKey>("/webhooks/signing-key");
  return (
    <Loaded of={key}>
      {({ public_key, public_key_pem }) => (
        <div class="form-row">
          <label>
            Public key for the receiver
            <input class="mono" readOnly value={public_key} onFocus={selectAll} />
          </label>
          <label>
            The same key as PEM
            <textarea class="mono" readOnly rows={3} value={public_key_pem} onFocus={selectAll} />
          </label>
        </div>
      )}
    </Loaded>
  );
}

function selectAll(event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }): void {
  event.currentTarget.select();
}
