import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";

type InputEvent = TargetedEvent<HTMLInputElement>;

/**
 * Attributes of an input whose text stays while the user types, also when the page is drawn anew because a run changed.
 * @param commit is called when the user is done with the field: with Enter, or by going to another one
 */
export function useEditedInput(value: string | number, commit: (input: HTMLInputElement) => void) {
  const [draft, setDraft] = useState<string>();
  return {
    value: draft ?? value,
    onInput: (event: InputEvent) => setDraft(event.currentTarget.value),
    onChange: (event: InputEvent) => {
      commit(event.currentTarget);
      setDraft(undefined);
    },
    onBlur: () => setDraft(undefined),
  };
}
