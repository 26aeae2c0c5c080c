import type { CloudError } from '../cloud/cloud-error.ts';
import type { RoutePlan } from './decide-routes.ts';
import type { RouteCreations } from './route-retries.ts';
import type { RoutedNode } from './routed-node.ts';

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
