import type { VpcRoute } from '../../cloud/cloud.ts';
import { parseCidr } from '../../crd/ip-text.ts';
import { ipv4RangeOf, isWithinAny } from './ipv4-range.ts';

/** A Node, as its routes depend on it. */
export type RouteNode = {
  readonly name: string;
  /** RFC 3339; of two Nodes with one network the older has it. */
  readonly createdAt: string;
  /** `spec.podCIDRs` as the object has them. */
  readonly podCidrs: readonly string[];
  readonly internalIp?: string;
};

/** What the routes of the VPC are compared with. */
type RouteFacts = {
  /** Networks of Pods of this cluster. Routes to other networks are not looked at. */
  readonly clusterCidrs: readonly string[];
  readonly nodes: readonly RouteNode[];
  readonly routes: readonly VpcRoute[];
  /** Id of this cluster. */
  readonly clusterId: string;
};

/** A network that has to lead to a node. */
type WantedRoute = { readonly node: string; readonly cidr: string; readonly gatewayIp: string };

/**
 * Why a route goes.
 * - `surplus`: another route leads the same network to its node.
 * - `moved`: its node is there, and has another network.
 * - `gone`: no Node has its network, and no Node its address. A broken API server shows this of all routes.
 */
type RemovalReason = 'surplus' | 'moved' | 'gone';

/** A route that is not needed. */
export type RouteRemoval = { readonly route: VpcRoute; readonly why: RemovalReason };

/** A Node whose routes cannot be made, and why, for people. */
type RouteFault = { readonly node: string; readonly message: string };

/** What makes every network of Pods lead to its node by exactly one route. */
export type RoutePlan = {
  readonly create: readonly WantedRoute[];
  /** Routes that lead a network to another address than that of its node. */
  readonly move: readonly (WantedRoute & { readonly route: VpcRoute })[];
  readonly remove: readonly RouteRemoval[];
  /** Networks that lead to their nodes already. */
  readonly right: readonly WantedRoute[];
  readonly faults: readonly RouteFault[];
};

/** Start of the description of every route that ipamd creates; the cluster's id follows. */
const OWNER = 'tke-eni ';

/** Returns the description of a route of a cluster. */
export function routeDescription(clusterId: string): string {
  return `${OWNER}${clusterId}`;
}

/** Decides what to do about the routes of the VPC. Routes of other clusters and to other networks stay as they are. */
export function decideRoutes(facts: RouteFacts): RoutePlan {
  const inCluster = routesWithin(facts.clusterCidrs, facts.routes);
  const byCidr = Map.groupBy(inCluster, ({ cidr }) => cidr);
  const { wanted, faults } = wantedRoutes(facts, byCidr);
  const create: WantedRoute[] = [];
  const move: (WantedRoute & { readonly route: VpcRoute })[] = [];
  const remove: RouteRemoval[] = [];
  const right: WantedRoute[] = [];
  for (const one of wanted.values()) {
    const [own, others] = [ownRoutes(byCidr.get(one.cidr), facts.clusterId), foreignOf(byCidr.get(one.cidr), facts)];
    const [other] = others;
    if (other !== undefined) {
      const of = other.description.slice(OWNER.length);
      const message = `the VPC leads ${one.cidr} to ${other.gatewayIp} for cluster ${of} (route ${other.routeId}); two clusters must not share a network of Pods`;
      faults.push({ node: one.node, message });
      continue;
    }
    const kept = own.find(({ gatewayIp }) => gatewayIp === one.gatewayIp) ?? own[0];
    remove.push(...own.filter((route) => route !== kept).map((route) => ({ route, why: 'surplus' as const })));
    if (kept === undefined) create.push(one);
    else if (kept.gatewayIp === one.gatewayIp) right.push(one);
    else move.push({ ...one, route: kept });
  }
  const unwanted = ownRoutes(inCluster, facts.clusterId).filter(({ cidr }) => !wanted.has(cidr));
  const byIp = new Map(facts.nodes.map((node) => [node.internalIp, node]));
  remove.push(...unwanted.flatMap((route) => removalOf(route, byIp.get(route.gatewayIp))));
  return { create, move, remove, right, faults };
}

/** Selects the routes to networks of the cluster. */
export function routesWithin(clusterCidrs: readonly string[], routes: readonly VpcRoute[]): readonly VpcRoute[] {
  const networks = clusterCidrs.flatMap((cidr) => ipv4RangeOf(cidr) ?? []);
  return routes.filter(({ cidr }) => {
    const range = ipv4RangeOf(cidr);
    return range !== undefined && isWithinAny(range, networks);
  });
}

/** Routes that ipamd of this cluster created, and those of people and of other controllers; in a stable order. */
function ownRoutes(routes: readonly VpcRoute[] = [], clusterId: string): readonly VpcRoute[] {
  const own = routes.filter(({ description }) => !isOfOther(description, clusterId));
  return own.toSorted((one, other) => compare(one.routeId, other.routeId));
}

function foreignOf(routes: readonly VpcRoute[] = [], { clusterId }: RouteFacts): readonly VpcRoute[] {
  return routes.filter(({ description }) => isOfOther(description, clusterId));
}

function isOfOther(description: string, clusterId: string): boolean {
  return description.startsWith(OWNER) && description !== routeDescription(clusterId);
}

type Wanted = { readonly wanted: ReadonlyMap<string, WantedRoute>; readonly faults: RouteFault[] };

function wantedRoutes({ nodes, clusterCidrs }: RouteFacts, byCidr: ReadonlyMap<string, readonly VpcRoute[]>): Wanted {
  const faults: RouteFault[] = [];
  const networks = clusterCidrs.flatMap((cidr) => ipv4RangeOf(cidr) ?? []);
  const claims = nodes.flatMap((node) =>
    node.podCidrs.flatMap((text) => {
      // The API has no routes of IPv6; a second network of that family is none of its nodes' faults.
      if (text.includes(':') && parseCidr(text) !== undefined) return [];
      const range = ipv4RangeOf(text);
      const isInside = range !== undefined && isWithinAny(range, networks);
      const message = faultOf(node, text, range?.cidr, isInside ? undefined : clusterCidrs);
      if (message !== undefined) faults.push({ node: node.name, message });
      if (message !== undefined || range === undefined || node.internalIp === undefined) return [];
      return [{ node: node.name, cidr: range.cidr, gatewayIp: node.internalIp, createdAt: node.createdAt }];
    }),
  );
  const wanted = new Map<string, WantedRoute>();
  for (const [cidr, rivals] of Map.groupBy(claims, (one) => one.cidr)) {
    const routed = new Set(byCidr.get(cidr)?.map(({ gatewayIp }) => gatewayIp));
    const rank = (one: (typeof claims)[number]): string => `${routed.has(one.gatewayIp) ? 0 : 1} ${one.createdAt} `;
    const [first, ...later] = rivals.toSorted((a, b) => compare(rank(a) + a.node, rank(b) + b.node));
    if (first === undefined) continue;
    wanted.set(cidr, { node: first.node, cidr, gatewayIp: first.gatewayIp });
    for (const { node } of later) {
      faults.push({ node, message: `podCIDR ${cidr} is that of node ${first.node} too; it leads there` });
    }
  }
  return { wanted, faults };
}

/** `outside`: the networks of the cluster, if the podCIDR is in none of them. */
function faultOf(
  { internalIp }: RouteNode,
  text: string,
  cidr: string | undefined,
  outside: readonly string[] | undefined,
): string | undefined {
  if (cidr === undefined) return `podCIDR ${JSON.stringify(text.slice(0, SHOWN_CHARS))} is no network`;
  if (outside !== undefined) {
    return `podCIDR ${cidr} is in no network of --cluster-cidr, ${outside.join(', ')}; add it there, or delete the Node so that it gets another`;
  }
  return internalIp === undefined
    ? `podCIDR ${cidr} leads nowhere: the Node has no IPv4 address of type InternalIP`
    : undefined;
}

const SHOWN_CHARS = 40;

/** `node` has the address that the route leads to. */
function removalOf(route: VpcRoute, node: RouteNode | undefined): readonly RouteRemoval[] {
  if (node === undefined) return [{ route, why: 'gone' }];
  const hasNetwork = node.podCidrs.some((cidr) => parseCidr(cidr)?.family === 4);
  // A node that registered again may get the same network: until it has one, its Pods keep the route.
  return hasNetwork ? [{ route, why: 'moved' }] : [];
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
