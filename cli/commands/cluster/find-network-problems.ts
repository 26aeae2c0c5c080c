import { isInCidr } from '../../../crd/ip-text.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { ClusterFacts, ClusterNode, ClusterPod } from './cluster-facts.ts';
import type { GracePeriod, NodeProblem } from './find-node-problems.ts';
import type { SubnetSupplies } from './read-published.ts';

/**
 * Finds what is wrong with the podCIDRs of Nodes: the VPC has no route to one, two Nodes have the same addresses, or Pods
 * got an address of it though the webhook had them ask for one of an ENI. By name of the Node.
 */
export function findNetworkProblems(
  facts: Pick<ClusterFacts, 'nodes' | 'pods'>,
  grace: GracePeriod,
): ReadonlyMap<string, readonly NodeProblem[]> {
  const nodes = (ifKnown(facts.nodes) ?? []).filter(({ podCidrs }) => podCidrs.length > 0);
  const podsByNode = Map.groupBy(ifKnown(facts.pods) ?? [], ({ nodeName }) => nodeName);
  const overlaps = findOverlaps(nodes);
  return new Map(
    nodes.map((node) => [
      node.key,
      [
        ...routeProblem(node, grace),
        ...(overlaps.get(node.key) ?? []),
        ...defaultProblem(node, podsByNode.get(node.key) ?? []),
      ],
    ]),
  );
}

/** How many Nodes with a podCIDR have a route of the VPC, as their condition NetworkUnavailable tells. */
export type RouteView = {
  readonly routed: number;
  /** Names of the Nodes without one, at most {@link MAX_NAMED}. */
  readonly missing: readonly string[];
  readonly missingCount: number;
  /** Nodes of which no controller of routes has written the condition. */
  readonly unknown: number;
};

/** Counts Nodes by whether the VPC has their route; undefined where no controller of routes is at work. */
export function buildRouteView(facts: Pick<ClusterFacts, 'nodes'>): RouteView | undefined {
  const nodes = (ifKnown(facts.nodes) ?? []).filter(({ podCidrs }) => podCidrs.length > 0);
  if (nodes.every(({ network }) => network === undefined)) return undefined;
  const missing = nodes.filter(({ network }) => network?.isUnavailable === true).map(({ key }) => key);
  return {
    routed: nodes.filter(({ network }) => network?.isUnavailable === false).length,
    missing: missing.slice(0, MAX_NAMED),
    missingCount: missing.length,
    unknown: nodes.filter(({ network }) => network === undefined).length,
  };
}

/** Number of Nodes and Pods that are named. */
const MAX_NAMED = 20;

function routeProblem({ network, createdMs }: ClusterNode, { nowMs, graceMs }: GracePeriod): readonly NodeProblem[] {
  if (network?.isUnavailable !== true) return [];
  const severity = nowMs - createdMs < graceMs ? 'info' : 'error';
  const { reason, message } = network;
  return [{ severity, reason: 'NetworkUnavailable', message: `${reason}: ${message}` }];
}

/** Compares each block with the next one by first address: of two that overlap one begins in the other. */
function findOverlaps(nodes: readonly ClusterNode[]): ReadonlyMap<string, readonly NodeProblem[]> {
  const blocks = nodes
    .flatMap(({ key, podCidrs }) => podCidrs.filter(isIpv4).map((cidr) => ({ key, cidr, first: firstOf(cidr) })))
    .toSorted((a, b) => a.first - b.first || bitsOf(a.cidr) - bitsOf(b.cidr));
  const found = new Map<string, NodeProblem[]>();
  const add = (key: string, own: string, other: (typeof blocks)[number]): void => {
    const message = `${own} overlaps ${other.cidr} of ${other.key}`;
    found.set(key, [...(found.get(key) ?? []), { severity: 'error', reason: 'PodCIDROverlap', message }]);
  };
  let widest = blocks[0];
  for (const block of blocks.slice(1)) {
    if (widest === undefined) break;
    if (isInCidr(block.cidr.split('/')[0] ?? '', widest.cidr)) {
      if (block.key === widest.key) continue;
      add(block.key, block.cidr, widest);
      add(widest.key, widest.cidr, block);
    } else widest = block;
  }
  return found;
}

/** The webhook's default is another one than the agent's: such Pods take an ENI's address from the scheduler's count. */
function defaultProblem({ podCidrs }: ClusterNode, pods: readonly ClusterPod[]): readonly NodeProblem[] {
  const cidrs = podCidrs.filter(isIpv4);
  const wrong = pods.filter(
    ({ asksEniIp, ips }) => asksEniIp && ips.some((ip) => cidrs.some((cidr) => isIpv4(ip) && isInCidr(ip, cidr))),
  );
  const [first] = wrong;
  if (first === undefined) return [];
  const message = `${wrong.length} Pods ask for an address of an ENI and have one of the podCIDR, as ${first.key}: --default-network of the webhook and of the agent differ`;
  return [{ severity: 'warning', reason: 'DefaultNetworkDiffers', message }];
}

function isIpv4(text: string): boolean {
  return !text.includes(':');
}

function firstOf(cidr: string): number {
  return (cidr.split('/')[0] ?? '').split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function bitsOf(cidr: string): number {
  return Number(cidr.split('/')[1]);
}

/**
 * Names the subnets of the configuration with addresses that are not those of the cluster's ENIs, a text each, where
 * nodes have podCIDRs: ipamd's event SubnetShared tells the same. Numbers of one publication, so the last call may be
 * counted by one side alone.
 */
export function findSharedSubnets(
  { nodes }: Pick<ClusterFacts, 'nodes'>,
  supplies: SubnetSupplies | undefined,
): readonly string[] {
  if (supplies === undefined || !hasPodCidrs({ nodes })) return [];
  return [...supplies.bySubnet]
    .map(([subnetId, { common, total, free, held }]) => ({ subnetId, count: common ? total - free - held : 0 }))
    .filter(({ count }) => count > 0)
    .map(
      ({ subnetId, count }) =>
        `SubnetShared: ${subnetId} has ${count} addresses that are not those of this cluster's ENIs: machines, load balancers or other clusters take what Pods may need; give ENIs of Pods a subnet of their own`,
    );
}

/** Reports whether a Node has a podCIDR: elsewhere the subnets of nodes and Pods may be the same. */
export function hasPodCidrs({ nodes }: Pick<ClusterFacts, 'nodes'>): boolean {
  return (ifKnown(nodes) ?? []).some(({ podCidrs }) => podCidrs.length > 0);
}
