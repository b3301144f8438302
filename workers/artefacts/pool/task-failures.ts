/** Codes of failures that tell nothing of what was to be made: it is made once the service has what it lacks. */

/** The process, or the machine, had no descriptor or memory left. */
export const RESOURCE_SHORTAGE = "resource_shortage";

/** No thread could be started, or none in time. */
export const NO_THREAD = "no_thread";
