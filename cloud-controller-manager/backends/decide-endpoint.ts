import { isInCidr } from '../../crd/ip-text.ts';
import { POD_ANNOTATION } from '../../crd/names.ts';
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

/** How a Pod is bound to a load balancer: by its own address, by the instance that it is on, or not at all, and why, with what to set instead. `unknown`: its Node is not in the cache. */
type PodBinding =
  | { readonly kind: 'address'; readonly isRouted: boolean }
  | { readonly kind: 'instance'; readonly instanceId: string }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'impossible'; readonly why: string };

/**
 * Decides how a Pod is bound. A Pod of an ENI is reached by its address, one in the host's network by its instance, and
 * one of GlobalRoute by its address where the VPC has a route to it.
 * @param keepsRoutes whether this program keeps routes to podCIDRs
 */
export function decideBinding(
  pod: Pick<BackendPod, 'network'>,
  ip: string,
  node: PodNode | undefined,
  keepsRoutes: boolean,
): PodBinding {
  if (pod.network === 'eni') return { kind: 'address', isRouted: false };
  const isNodeNeeded = pod.network !== 'bridge' || keepsRoutes;
  if (node === undefined && isNodeNeeded) return { kind: 'unknown' };
  if (pod.network === 'host') {
    if (node?.instanceIps !== undefined && !node.instanceIps.includes(ip))
      return impossible(
        'it is in the network of a Node whose instance does not have its address',
        'start the kubelet with --node-ip of its instance',
      );
    if (node?.instanceId !== undefined) return { kind: 'instance', instanceId: node.instanceId };
    return impossible(
      'it is in the network of a Node that is no instance of this cloud',
      'let it run on instances alone, by a nodeSelector',
    );
  }
  const isRouted = pod.network === 'bridge' || (node?.podCidrs.some((cidr) => isInCidr(ip, cidr)) ?? false);
  if (!isRouted) return { kind: 'address', isRouted };
  if (!keepsRoutes)
    return impossible(
      'it has an address of its node (GlobalRoute), and --routes does not say that the VPC leads there',
      `${WITH_ENI}, or set --routes of tke-cloud-controller-manager, and --gr-routes=ccm of ipamd`,
    );
  if (node?.hasNetwork === true) return { kind: 'address', isRouted };
  return impossible(
    'the VPC has no route to its node',
    `see the event FailedToCreateRoute of the Node, or ${WITH_ENI}`,
  );
}

const WITH_ENI = `give it an address of an ENI by the annotation ${POD_ANNOTATION.networks}: tke-route-eni of its template`;

/** Says what else to do where no Pod can be bound, for people; the end of a sentence. */
export const WITH_NODES =
  'or let Nodes be the backends by "false" in the annotation service.cloud.tencent.com/direct-access, of an Ingress ingress.cloud.tencent.com/direct-access';

function impossible(why: string, cure: string): PodBinding {
  return { kind: 'impossible', why: `${why}; ${cure}, ${WITH_NODES}` };
}
