/** Made by the build of answers of test/helpers/example-cell.ts. */

/** Events of the example cell, by name. */
export const EVENT_EXAMPLES: Readonly<Record<string, unknown>>;

/** Answers of it, by operation. */
export const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>>;

/** Its answer to a request that it does not take. */
export const ERROR_EXAMPLE: unknown;
