import { isReadOnly } from "../../data/session.js";

/** Says why buttons do nothing, once the service has refused a write. */
export function ReadOnlyNote() {
  return isReadOnly.value ? (
    <p class="fault-box" role="status">
      This API key may only read. To change webhooks, lock the page and use a key with the scope manage.
    </p>
  ) : null;
}
