/** The system's setting of dark or light. What is drawn on a canvas is drawn again when it changes. */
import { signal } from "@preact/signals";

const query = matchMedia("(prefers-color-scheme: dark)");

export const isDark = signal(query.matches);

query.addEventListener("change", () => {
  isDark.value = query.matches;
});
