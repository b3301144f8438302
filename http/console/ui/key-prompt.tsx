import { signal } from "@preact/signals";
import { ApiError, getJson } from "../data/api.js";
import { connectLive } from "../data/live.js";
import { apiKey, useKey } from "../data/session.js";

const fault = signal("");
const isAsking = signal(false);

/** Asks for an API key, and takes it if the service does. */
export function KeyPrompt() {
  return (
    <form class="key-prompt" onSubmit={(event) => void submit(event)}>
      <h1>API key</h1>
      <p>This service answers only with an API key. It stays in this tab until you lock it or close it.</p>
      <label>
        Key
        <input
          name="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          aria-invalid={fault.value !== ""}
          aria-describedby="key-fault"
        />
      </label>
      <p id="key-fault" class="fault" role="alert">
        {fault.value}
      </p>
      <button type="submit" class="primary" disabled={isAsking.value}>
        Unlock
      </button>
      <p class="note">
        <code>inspection-service keys add --scope read</code> makes one.
      </p>
    </form>
  );
}

async function submit(event: SubmitEvent): Promise<void> {
  event.preventDefault();
  const key = String(new FormData(event.target as HTMLFormElement).get("key")).trim();
  fault.value = "";
  // A header carries visible ASCII only.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    fault.value = "This is not a key: keys begin with isk_.";
    return;
  }
  isAsking.value = true;
  apiKey.value = key;
  try {
    await getJson("/system/version");
    useKey(key);
    connectLive();
  } catch (error) {
    apiKey.value = undefined;
    fault.value =
      error instanceof ApiError && error.status === 401
        ? "The service does not know this key."
        : (error as Error).message;
  } finally {
    isAsking.value = false;
  }
}
