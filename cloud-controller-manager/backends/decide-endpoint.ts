import type { BackendPod } from './backend-pod.ts';
import type { BackendSettings } from './backend-settings.ts';
import type { Endpoint } from './endpoint-slice.ts';
import type { PodNode } from './pod-node.ts';

/**
 * What becomes of an endpoint.
 * - `bind`: it is a target.
 * - `drain`: it has weight 0 as long as it is there, and is not made a target.
 * - `leave`: it is no target: what it was ends.
 * - `stay`: it stays what it is, until more is known.
 * - `reserve`: it serves if no endpoint is bound: what its node said last is old.
 */
export type EndpointOutcome = 'bind' | 'drain' | 'leave' | 'stay' | 'reserve';

/** What is known of an endpoint beside its slice. Absent: it is not in the cache. */
type EndpointFacts = {
  readonly endpoint: Endpoint;
  readonly pod: BackendPod | undefined;
  /** Whether the Pod of the endpoint was in the cache, and has ended. */
  readonly hasEnded: boolean;
  /** Whether the Pod has not been in the cache for a while: there is none. */
  readonly isGone: boolean;
  readonly node: PodNode | undefined;
  readonly settings: Pick<BackendSettings, 'drainsLeaving' | 'drainsUnready'>;
};

/**
 * Decides what becomes of an endpoint. A Pod whose gate is not True is not ready: whether its containers are counts then, and
 * whether its other gates are True.
 * An endpoint of a former Pod of the same name, or with an address that is not the Pod's own, is never a target.
 */
export function decideEndpoint({ endpoint, pod, hasEnded, isGone, node, settings }: EndpointFacts): EndpointOutcome {
  // No connection is left that could end.
  if (isGone) return 'leave';
  // A slice says it later than the Pod.
  const isEnding = endpoint.isTerminating || pod?.isLeaving === true || hasEnded;
  if (isEnding) return settings.drainsLeaving === false ? 'leave' : 'drain';
  if (pod === undefined) return 'stay';
  if (endpoint.podUid !== undefined && endpoint.podUid !== pod.uid) return 'drain';
  if (pod.ips.length === 0) return 'stay';
  if (!pod.ips.includes(endpoint.ip)) return 'drain';
  if (endpoint.isReady) return 'bind';
  if (node?.isSilent === true) return 'reserve';
  if (pod.gate !== undefined && pod.areContainersReady && pod.areOtherGatesTrue) return 'bind';
  return settings.drainsUnready === true ? 'drain' : 'leave';
}
