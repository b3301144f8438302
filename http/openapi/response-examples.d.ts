/** The build makes these from answers of the example cell (test/helpers/example-cell.ts). */

/** Events of the example cell, by name. */
export const EVENT_EXAMPLES: Readonly<Record<string, unknown>>;

/** Answers of the example cell, by operation. */
export const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>>;

/** Its answer to a request that is wrong. */
export const ERROR_EXAMPLE: unknown;
