import type { BackendPod } from '../backends/backend-pod.ts';
import type { BackendPort } from '../backends/backend-port.ts';
import type { BackendSettings } from '../backends/backend-settings.ts';
import { decideBinding, decideEndpoint, type EndpointOutcome, WITH_NODES } from '../backends/decide-endpoint.ts';
import type { EndpointSlice } from '../backends/endpoint-slice.ts';
import type { PodNode } from '../backends/pod-node.ts';
import { selectSpread } from '../backends/select-spread.ts';
import type { DesiredTarget } from './desired-targets.ts';
import { type Notice, remark } from './notice.ts';
import { TARGET_WEIGHT, type TargetPlan } from './plan-targets.ts';

/** What the targets of a Service are made of whose backends are Pods. */
export type PodBackends = {
  /** All slices of the Service. */
  readonly slices: readonly EndpointSlice[];
  /** By `namespace/name`; undefined: it is not in the cache. */
  readonly podOf: (key: string) => BackendPod | undefined;
  /** Whether a Pod with a uid was in the cache and has ended; absent: that is not known of any. */
  readonly hasEnded?: (uid: string) => boolean;
  /** Whether a Pod has not been in the cache for a while; absent: that is not known of any. */
  readonly isGone?: (key: string) => boolean;
  readonly nodeOf: (name: string) => PodNode | undefined;
  /** Whether this program keeps routes to podCIDRs. */
  readonly keepsRoutes: boolean;
};

/** Pods of a Service that are not bound, by `namespace/name`. */
export type UnboundPods = {
  /** They cannot be bound at all. */
  readonly impossible: ReadonlySet<string>;
  /** There is no quota for them. */
  readonly unselected: ReadonlySet<string>;
};

type PlannedEndpoint = {
  /** Key of the Pod, for people and for a stable selection. */
  readonly name: string;
  readonly zone: string;
  readonly slice: EndpointSlice;
  readonly ip: string;
  readonly outcome: EndpointOutcome;
  readonly instanceId?: string;
  readonly isRouted?: boolean;
};

/** The targets of one port. */
type PortPlan = {
  readonly targets: readonly DesiredTarget[];
  readonly keptIps: readonly string[];
  /** How many Pods may be targets, how many of them are, and who is not. */
  readonly candidates: number;
  readonly selected: number;
  readonly unselected: readonly string[];
};

/** Names in a message; the others are counted. */
const SHOWN = 3;

/** Plans the targets of a Service: its Pods, by the ports of its slices. It depends on its arguments alone. */
export function planPodTargets(
  facts: PodBackends,
  settings: BackendSettings,
  ports: readonly BackendPort[],
  maxTargets = Number.POSITIVE_INFINITY,
): TargetPlan & { readonly unbound: UnboundPods } {
  const refused: { readonly why: string; readonly name: string }[] = [];
  const all = facts.slices
    .flatMap((slice) => slice.endpoints.flatMap((endpoint) => planOne(endpoint, slice)))
    // Not every account takes routed ones: the others are registered before they are tried.
    .toSorted((one, other) => Number(one.isRouted === true) - Number(other.isRouted === true));
  const portsIn = portsOfSlices(all);
  const plans = new Map(ports.map((port) => [idOf(port), planPort(idOf(port), portsIn, all, settings, maxTargets)]));
  const notices = [
    ...[...Map.groupBy(refused, ({ why }) => why)].map(([why, all]) => {
      const message = `${listOf(all.map(({ name }) => name))} not bound to the load balancer: ${why}`;
      return remark('DirectAccessImpossible', message);
    }),
    ...noticesOf(ports, plans, maxTargets),
  ];
  const unbound = {
    impossible: new Set(refused.map(({ name }) => name)),
    unselected: new Set([...plans.values()].flatMap(({ unselected }) => unselected)),
  };
  // Nothing can take the place of Nodes: they stay.
  const keepsNodes = refused.length > 0 && all.every(({ outcome }) => outcome === 'drain' || outcome === 'leave');
  return {
    targetsOf: (port) => plans.get(idOf(port))?.targets ?? [],
    keptIpsOf: (port) => plans.get(idOf(port))?.keptIps ?? [],
    notices,
    unbound,
    ...(keepsNodes ? { keepsNodes } : {}),
  };

  function planOne(
    { pod: key, ...endpoint }: EndpointSlice['endpoints'][number],
    slice: EndpointSlice,
  ): readonly PlannedEndpoint[] {
    const { ip } = endpoint;
    if (key === undefined) {
      const why = `no Pod has the address; name the Pod in targetRef of the endpoint, ${WITH_NODES}`;
      refused.push({ why, name: ip });
      return [];
    }
    const pod = facts.podOf(key);
    const node = pod === undefined ? undefined : facts.nodeOf(pod.nodeName);
    const hasEnded = endpoint.podUid !== undefined && facts.hasEnded?.(endpoint.podUid) === true;
    const isGone = pod === undefined && facts.isGone?.(key) === true;
    const outcome = decideEndpoint({ endpoint, pod, hasEnded, isGone, node, settings });
    const one: PlannedEndpoint = { name: key, zone: node?.zone ?? '', slice, ip, outcome };
    if (pod === undefined) return [one];
    const binding = decideBinding(pod, ip, node, facts.keepsRoutes);
    if (binding.kind === 'unknown') return [isServing(outcome) ? { ...one, outcome: 'stay' as const } : one];
    if (binding.kind === 'address') return [{ ...one, isRouted: binding.isRouted }];
    if (binding.kind === 'instance') return [{ ...one, instanceId: binding.instanceId }];
    // The address of an endpoint that ends may be one of something else.
    if (outcome === 'drain') return [one];
    refused.push({ why: binding.why, name: key });
    return [];
  }
}

/** Names a port of a Service as its slices do. */
function idOf({ name, protocol }: EndpointSlice['ports'][number] | BackendPort): string {
  return `${protocol} ${name}`;
}

/** The ports of each slice by what they are behind; in one slice their names differ. */
type SlicePorts = ReadonlyMap<EndpointSlice, ReadonlyMap<string, number>>;

function portsOfSlices(endpoints: readonly PlannedEndpoint[]): SlicePorts {
  const slices = new Set(endpoints.map(({ slice }) => slice));
  return new Map([...slices].map((slice) => [slice, new Map(slice.ports.map((one) => [idOf(one), one.port]))]));
}

function isServing(outcome: EndpointOutcome): boolean {
  return outcome === 'bind' || outcome === 'reserve';
}

/** Target ports with names may be of other Pods for each port of the Service. */
function planPort(
  id: string,
  portsIn: SlicePorts,
  all: readonly PlannedEndpoint[],
  settings: BackendSettings,
  maxTargets: number,
): PortPlan {
  const portOf = ({ slice }: PlannedEndpoint): number | undefined => portsIn.get(slice)?.get(id);
  const its = all.filter((endpoint) => portOf(endpoint) !== undefined);
  const bound = uniqueOf(its.filter(({ outcome }) => outcome === 'bind'));
  // When nothing else is left, what is not heard of may still serve.
  const candidates = bound.length > 0 ? bound : uniqueOf(its.filter(({ outcome }) => outcome === 'reserve'));
  const selected = new Set(selectSpread(candidates, maxTargets).map(({ name }) => name));
  const weightOf = ({ name, outcome }: PlannedEndpoint): DesiredTarget['weight'] | undefined => {
    if (selected.has(name) && isServing(outcome)) return TARGET_WEIGHT;
    if (outcome === 'stay') return 'asIs';
    return outcome === 'drain' || (outcome === 'reserve' && settings.drainsUnready === true) ? 0 : undefined;
  };
  const known = new Set(its.map(({ name }) => name));
  // A slice gets the name of a port later than its Service.
  const kept = all.filter(({ name, outcome }) => !known.has(name) && (isServing(outcome) || outcome === 'stay'));
  return {
    targets: targetsOf(its, portOf, weightOf),
    keptIps: [...new Set(kept.map(({ ip }) => ip))].toSorted(),
    candidates: candidates.length,
    selected: selected.size,
    unselected: candidates.flatMap(({ name }) => (selected.has(name) ? [] : [name])),
  };
}

function noticesOf(
  ports: readonly BackendPort[],
  plans: ReadonlyMap<string, PortPlan>,
  maxTargets: number,
): readonly Notice[] {
  const all = ports.flatMap((port) => {
    const plan = plans.get(idOf(port));
    return plan === undefined ? [] : [{ port, plan }];
  });
  if (all.every(({ plan }) => plan.candidates === 0))
    return [remark('UnAvailableLoadBalancer', 'There are no ready Pods for LoadBalancer')];
  const empty = all.flatMap(({ port: { port, protocol }, plan }) => {
    const message = `port ${port} of ${protocol}: no ready Pod has its target port; look at targetPort`;
    return plan.candidates === 0 ? [message] : [];
  });
  const over = all.flatMap(({ plan: { candidates, selected } }) => {
    const message = `${candidates} Pods are backends, and a listener may have ${maxTargets} targets; ${selected} of them are bound, of all zones; raise the quota of the account, or let fewer Pods be selected`;
    return selected < candidates ? [message] : [];
  });
  return [
    ...empty.map((message) => remark('UnAvailableLoadBalancer', message)),
    ...[...new Set(over)].map((message) => remark('TargetsOverQuota', message)),
  ];
}

/** A Pod may be in two slices for a moment, and in one for each of its ports. */
function uniqueOf(endpoints: readonly PlannedEndpoint[]): readonly PlannedEndpoint[] {
  return [...new Map(endpoints.map((endpoint) => [endpoint.name, endpoint])).values()];
}

/** Of one address and port that is there twice, what serves counts. */
function targetsOf(
  endpoints: readonly PlannedEndpoint[],
  portOf: (endpoint: PlannedEndpoint) => number | undefined,
  weightOf: (endpoint: PlannedEndpoint) => DesiredTarget['weight'] | undefined,
): readonly DesiredTarget[] {
  const targets = new Map<string, DesiredTarget>();
  for (const endpoint of endpoints) {
    const [weight, port] = [weightOf(endpoint), portOf(endpoint)];
    if (weight === undefined || port === undefined) continue;
    const { ip, instanceId } = endpoint;
    const id = `${ip}:${port}`;
    const known = targets.get(id);
    if (known !== undefined && rankOf(known.weight) >= rankOf(weight)) continue;
    targets.set(id, { ip, port, weight, ...(instanceId === undefined ? {} : { instanceId }) });
  }
  return [...targets.values()];
}

function rankOf(weight: DesiredTarget['weight']): number {
  return weight === 'asIs' ? 0.5 : weight;
}

function listOf(names: readonly string[]): string {
  const unique = [...new Set(names)].toSorted();
  const shown = unique.slice(0, SHOWN).join(', ');
  if (unique.length === 1) return `${shown} is`;
  return unique.length <= SHOWN ? `${shown} are` : `${shown} and ${unique.length - SHOWN} more are`;
}
