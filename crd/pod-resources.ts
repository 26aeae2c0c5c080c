import { listOf, recordOf } from '../runtime/json.ts';

/** Tells whether a container of a Pod requests an extended resource. `spec`: of the Pod; any shape is accepted. */
export function requestsResource(spec: unknown, resource: string): boolean {
  const containers = recordOf(spec)['containers'];
  return listOf(containers).some((container: unknown) => {
    const { limits, requests } = recordOf(recordOf(container)['resources']);
    return [limits, requests].some((one) => recordOf(one)[resource] !== undefined);
  });
}
