import type { CloudError } from '../cloud/cloud-error.ts';
import { isLedTo, NOT_KEPT_BUT_IN_SERVICE, type RoutePlan } from './decide-routes.ts';
import type { RouteCreations } from './route-retries.ts';
import type { RoutedNode } from './routed-node.ts';
import type { RoutesByPlace } from './routes-elsewhere.ts';

/** What is known after the changes of a plan were tried. */
type NetworkFacts = {
  readonly plan: RoutePlan;
  /** What of the plan was tried. */
  readonly tried: RouteCreations;
  /** Errors of what was tried, by network. */
  readonly failed: ReadonlyMap<string, CloudError>;
  /** How often in a row a network failed, the last time included. */
  readonly attemptsOf: (cidr: string) => number;
  /** The cloud refuses all creations with this, and what was not tried was not because of that. */
  readonly refusal: CloudError | undefined;
  /** What was last said of a network without a route. */
  readonly lastMessageOf: (cidr: string) => string | undefined;
};

/** What is said of nodes. One that is in neither is left as it is: nothing is known of it. */
export type NodeNetworks = {
  /** Nodes to whose networks the VPC leads. */
  readonly routed: ReadonlySet<string>;
  /** Nodes with a network without a route, and why. */
  readonly unrouted: ReadonlyMap<string, string>;
  /** Nodes that are in service without a route that is kept here, and why. */
  readonly notKept: ReadonlyMap<string, string>;
};

/** What is said of nodes, and of each network without a route. */
type DecidedNetworks = NodeNetworks & { readonly messages: ReadonlyMap<string, string> };

/**
 * Decides what is said of the nodes of a plan. A first call without an answer says nothing: the route may be there, and
 * so it may when the cloud described an earlier state and refuses a second route to the same network.
 */
export function decideNodeNetworks(facts: NetworkFacts): DecidedNetworks {
  const { plan, tried, failed, attemptsOf, refusal, lastMessageOf } = facts;
  const unrouted = new Map<string, string>(plan.faults.map(({ node, message }) => [node, message]));
  const notKept = new Map<string, string>(plan.notKept.map(({ node, message }) => [node, message]));
  const unknown = new Set<string>();
  const messages = new Map<string, string>();
  const lacks = (node: string, cidr: string, message: string): void => {
    unrouted.set(node, message);
    messages.set(cidr, message);
  };
  for (const { node, cidr, message } of plan.full) lacks(node, cidr, message);
  const isTried = new Set([...tried.create, ...tried.move].map(({ cidr }) => cidr));
  const missing = [...plan.create, ...plan.move];
  for (const { node, cidr } of missing) {
    const error = failed.get(cidr);
    if (error === undefined && isTried.has(cidr)) continue;
    const isOpen = error?.retry === 'resolve' && attemptsOf(cidr) <= 1;
    const cause = isOpen ? undefined : (error ?? (lastMessageOf(cidr) === undefined ? refusal : undefined));
    const said = cause === undefined ? lastMessageOf(cidr) : `the VPC got no route to ${cidr}: ${cause.message}`;
    if (said === undefined) unknown.add(node);
    else lacks(node, cidr, said);
  }
  const names = [...[...plan.right, ...missing].map(({ node }) => node), ...notKept.keys()];
  const routed = new Set(names.filter((node) => !unrouted.has(node) && !unknown.has(node)));
  return { routed, unrouted, notKept, messages };
}

/** Puts together what is said by the routes of two places: a node has a route where both lead to it. */
export function mergeNetworks(one: NodeNetworks, other: NodeNetworks): NodeNetworks {
  return {
    routed: new Set([...one.routed].filter((node) => other.routed.has(node))),
    unrouted: new Map([...one.unrouted, ...other.unrouted]),
    notKept: new Map([...one.notKept, ...other.notKept]),
  };
}

/**
 * Adds the nodes without a podCIDR whose Pods have addresses of the VPC: they need no route. Only one whose
 * condition is True gets False; its kubelet, or who initialised it, expected a route.
 */
export function withEniNodes(networks: NodeNetworks, nodes: readonly RoutedNode[]): NodeNetworks {
  const waiting = nodes.filter(
    ({ podCidrs, hasEniPods, networkCondition }) =>
      hasEniPods === true && podCidrs.length === 0 && networkCondition?.status === 'True',
  );
  return { ...networks, routed: new Set([...networks.routed, ...waiting.map(({ name }) => name)]) };
}

/** A Node that is in service, and would be closed as this place has no route to it. */
type LackingNode = RoutedNode & { readonly lackedCidrs: readonly string[] };

/** Finds the Nodes that only lack routes; one whose route leads elsewhere, or that has another fault, is none. */
export function findLacking(
  { unrouted }: NodeNetworks,
  plan: Pick<RoutePlan, 'create' | 'full' | 'move' | 'faults'>,
  nodes: readonly RoutedNode[],
): readonly LackingNode[] {
  if (unrouted.size === 0) return [];
  const isWrong = new Set([...plan.move, ...plan.faults].map(({ node }) => node));
  const lacked = Map.groupBy([...plan.create, ...plan.full], ({ node }) => node);
  return nodes.flatMap((node) => {
    const isOpen = node.networkCondition?.status === 'False';
    const lackedCidrs = (lacked.get(node.name) ?? []).map(({ cidr }) => cidr);
    if (!isOpen || !unrouted.has(node.name) || isWrong.has(node.name) || lackedCidrs.length === 0) return [];
    return [{ ...node, lackedCidrs }];
  });
}

/**
 * Keeps those Nodes in service to which a route of another place leads. The others are closed, unless nothing is known of
 * other places: then they are left as they are.
 * @param here the place without the routes, and the setting that names it, for people
 */
export function keepServed(
  networks: NodeNetworks,
  lacking: readonly LackingNode[],
  elsewhere: RoutesByPlace | undefined,
  here: { readonly place: string; readonly placeSetting: string },
): NodeNetworks {
  const unrouted = new Map(networks.unrouted);
  const notKept = new Map(networks.notKept);
  const routed = new Set(networks.routed);
  const places = [...(elsewhere ?? [])].map(([place, its]) => [place, Map.groupBy(its, ({ cidr }) => cidr)] as const);
  for (const node of lacking) {
    const leads = node.lackedCidrs.map((cidr) => places.find(([, byCidr]) => isLedTo(node, byCidr.get(cidr)))?.[0]);
    const [place] = leads;
    const message = unrouted.get(node.name);
    if (elsewhere !== undefined && leads.includes(undefined)) continue;
    unrouted.delete(node.name);
    if (place === undefined) continue;
    routed.add(node.name);
    const where = `A route in ${place} leads to it, none in ${here.place}`;
    notKept.set(node.name, `${message}. ${where}. ${NOT_KEPT_BUT_IN_SERVICE}: correct ${here.placeSetting}`);
  }
  return { routed, unrouted, notKept };
}

/** The body of a strategic patch of `nodes/status`; conditions merge by type, so others stay. */
type NetworkConditionPatch = {
  readonly status: { readonly conditions: readonly Readonly<Record<string, string>>[] };
};

/** As the route controller of Kubernetes' cloud providers writes them: kube-controller-manager makes a taint of it. */
const ROUTED = { status: 'False', reason: 'RouteCreated', message: 'RouteController created a route' } as const;
const NOT_ROUTED = {
  status: 'True',
  reason: 'NoRouteCreated',
  message: 'RouteController failed to create a route',
} as const;

/**
 * Decides the condition NetworkUnavailable of a node with a network for Pods. Undefined: it is up to date. As that
 * controller does, it writes only when the status differs.
 * @see https://github.com/kubernetes/cloud-provider/blob/master/controllers/route/route_controller.go
 */
export function decideNetworkCondition(
  current: { readonly status: string } | undefined,
  isRouted: boolean,
  nowText: string,
): NetworkConditionPatch | undefined {
  const required = isRouted ? ROUTED : NOT_ROUTED;
  if (current?.status === required.status) return undefined;
  return { status: { conditions: [{ type: 'NetworkUnavailable', ...required, lastTransitionTime: nowText }] } };
}
