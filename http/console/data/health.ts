import { getHealth, type Health } from "./api.js";
import { type Resource, useResource } from "./resource.js";
import { isKeyWanted } from "./session.js";

/** The health of cell and service, shared by all that show it. The shell reads it again every few seconds. */
export function useHealth(): Resource<Health> {
  return useResource<Health>(isKeyWanted.value ? null : "/health", getHealth);
}
