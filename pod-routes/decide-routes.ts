import type { VpcRoute } from '../cloud/cloud.ts';
import { parseCidr } from '../crd/ip-text.ts';
import { ipv4RangeOf, isWithinAny } from '../crd/ipv4-range.ts';
import { compareTexts } from '../runtime/compare-texts.ts';

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
  /**
   * Which routes within the networks of the cluster are own ones. `mark`: those whose description names this cluster.
   * `network`: all but those whose description names another cluster.
   */
  readonly ownership: RouteOwnership;
};

/** How routes of this cluster are distinguished from those of others. */
export type RouteOwnership = 'mark' | 'network';

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

/** Why a route of a Node is not made or not kept, for people. */
type RouteFault = { readonly node: string; readonly message: string };

/** What makes every network of Pods lead to its node by exactly one route. */
export type RoutePlan = {
  readonly create: readonly WantedRoute[];
  /** Routes that lead a network to another address than that of its node. */
  readonly move: readonly (WantedRoute & { readonly route: VpcRoute })[];
  readonly remove: readonly RouteRemoval[];
  /** Networks that lead to their nodes already. */
  readonly right: readonly WantedRoute[];
  /** Nodes whose routes cannot be made. */
  readonly faults: readonly RouteFault[];
  /** Nodes to which a route leads that is not kept here, as by a setting that is wrong: they work as they are. */
  readonly notKept: readonly RouteFault[];
  /** Networks for which the place has no capacity. */
  readonly full: readonly (WantedRoute & RouteFault)[];
};

/** Start of the description of every route that is created here; the cluster's id follows. */
const OWNER = 'tke-eni ';

/** Returns the description of a route of a cluster. */
export function routeDescription(clusterId: string): string {
  return `${OWNER}${clusterId}`;
}

/** Decides what to do about the routes of the VPC. Routes of other clusters and to other networks stay as they are. */
export function decideRoutes(facts: RouteFacts): RoutePlan {
  const all = routesWithin(facts.clusterCidrs, facts.routes);
  // The VPC does not obey one that is disabled, and takes no second one to the same network.
  const [inCluster, disabled] = [all.filter((one) => !isOff(one)), all.filter(isOff)];
  const byCidr = Map.groupBy(inCluster, ({ cidr }) => cidr);
  const disabledByCidr = new Map(disabled.map((route) => [route.cidr, route]));
  const { wanted, faults, notKept } = wantedRoutes(facts, byCidr);
  const create: WantedRoute[] = [];
  const move: (WantedRoute & { readonly route: VpcRoute })[] = [];
  const remove: RouteRemoval[] = [];
  const right: WantedRoute[] = [];
  for (const one of wanted.values()) {
    const [own, others] = [ownRoutes(byCidr.get(one.cidr), facts), foreignOf(byCidr.get(one.cidr), facts)];
    const other = others.find(({ gatewayIp }) => gatewayIp !== one.gatewayIp) ?? others[0];
    if (other !== undefined) {
      // Whose it is does not matter where it leads to the node.
      if (isLedByOthers(other, one)) {
        right.push(one);
        remove.push(...own.map((route) => ({ route, why: 'surplus' as const })));
      } else if (other.gatewayIp === one.gatewayIp)
        notKept.push({ node: one.node, message: otherClusterMessage(one.cidr, other) });
      else faults.push({ node: one.node, message: foreignMessage(one.cidr, other) });
      continue;
    }
    const kept = own.find(({ gatewayIp }) => gatewayIp === one.gatewayIp) ?? own[0];
    remove.push(...own.filter((route) => route !== kept).map((route) => ({ route, why: 'surplus' as const })));
    const off = disabledByCidr.get(one.cidr);
    if (kept?.gatewayIp !== one.gatewayIp && off !== undefined)
      faults.push({ node: one.node, message: disabledMessage(off) });
    else if (kept === undefined) create.push(one);
    else if (kept.gatewayIp === one.gatewayIp) right.push(one);
    else move.push({ ...one, route: kept });
  }
  const unwanted = ownRoutes(all, facts).filter(({ cidr }) => !wanted.has(cidr));
  const byIp = Map.groupBy(facts.nodes, ({ internalIp = '' }) => internalIp);
  remove.push(...unwanted.flatMap((route) => removalOf(route, byIp.get(route.gatewayIp) ?? [])));
  return { create, move, remove, right, faults, notKept, full: [] };
}

/** Selects the routes to networks of the cluster. */
export function routesWithin(clusterCidrs: readonly string[], routes: readonly VpcRoute[]): readonly VpcRoute[] {
  const networks = clusterCidrs.flatMap((cidr) => ipv4RangeOf(cidr) ?? []);
  return routes.filter(({ cidr }) => {
    const range = ipv4RangeOf(cidr);
    return range !== undefined && isWithinAny(range, networks);
  });
}

/** Routes of this cluster, in a stable order. */
function ownRoutes(routes: readonly VpcRoute[] = [], facts: RouteFacts): readonly VpcRoute[] {
  const own = routes.filter(({ description }) => !isOfOther(description, facts));
  return own.toSorted((one, other) => compareTexts(one.routeId, other.routeId));
}

function foreignOf(routes: readonly VpcRoute[] = [], facts: RouteFacts): readonly VpcRoute[] {
  return routes.filter(({ description }) => isOfOther(description, facts));
}

function isOfOther(description: string, { clusterId, ownership }: RouteFacts): boolean {
  if (description === routeDescription(clusterId)) return false;
  return ownership === 'mark' || description.startsWith(OWNER);
}

function isLedByOthers(other: VpcRoute, { gatewayIp }: WantedRoute): boolean {
  return other.gatewayIp === gatewayIp && !other.description.startsWith(OWNER);
}

function foreignMessage(cidr: string, { gatewayIp, routeId, description }: VpcRoute): string {
  const start = `the VPC leads ${cidr} to ${gatewayIp}`;
  if (!description.startsWith(OWNER)) {
    return `${start} by route ${routeId}, which is none of this cluster; delete that route, or the Node so that it gets another podCIDR`;
  }
  const of = description.slice(OWNER.length);
  return `${start} for cluster ${of} (route ${routeId}); two clusters must not share a network of Pods`;
}

function isOff({ isDisabled }: VpcRoute): boolean {
  return isDisabled === true;
}

function disabledMessage({ cidr, routeId }: VpcRoute): string {
  return `route ${routeId} to ${cidr} is disabled; enable it, or delete it so that another is made`;
}

/** The route leads to the node. */
function otherClusterMessage(cidr: string, { routeId, description }: VpcRoute): string {
  const of = description.slice(OWNER.length);
  return `the VPC leads ${cidr} to the node by route ${routeId} of cluster ${of}. ${NOT_KEPT_BUT_IN_SERVICE}: set --clusterid=${of} if that is this cluster; two clusters must not share a network of Pods`;
}

/** For people. */
export const NOT_KEPT_BUT_IN_SERVICE = 'The node stays in service, but nothing keeps that route';

type Wanted = {
  readonly wanted: ReadonlyMap<string, WantedRoute>;
  readonly faults: RouteFault[];
  readonly notKept: RouteFault[];
};

function wantedRoutes(
  { nodes, clusterCidrs, routes: present }: RouteFacts,
  byCidr: ReadonlyMap<string, readonly VpcRoute[]>,
): Wanted {
  const faults: RouteFault[] = [];
  const notKept: RouteFault[] = [];
  const allByCidr = Map.groupBy(present, ({ cidr }) => cidr);
  const networks = clusterCidrs.flatMap((cidr) => ipv4RangeOf(cidr) ?? []);
  const claims = nodes.flatMap((node) =>
    node.podCidrs.flatMap((text) => {
      // The API has no routes of IPv6; a second network of that family is none of its nodes' faults.
      if (text.includes(':') && parseCidr(text) !== undefined) return [];
      const range = ipv4RangeOf(text);
      const isInside = range !== undefined && isWithinAny(range, networks);
      const outside = isInside ? undefined : clusterCidrs;
      if (range !== undefined && outside !== undefined && isLedTo(node, allByCidr.get(range.cidr))) {
        const message = `${outsideMessage(range.cidr, outside)}. Its route leads to the node. ${NOT_KEPT_BUT_IN_SERVICE}: add the network to --cluster-cidr`;
        notKept.push({ node: node.name, message });
        return [];
      }
      const message = faultOf(node, text, range?.cidr, outside);
      if (message !== undefined) faults.push({ node: node.name, message });
      if (message !== undefined || range === undefined || node.internalIp === undefined) return [];
      return [{ node: node.name, cidr: range.cidr, gatewayIp: node.internalIp, createdAt: node.createdAt }];
    }),
  );
  const wanted = new Map<string, Claim>();
  const usual = usualLengthOf(claims);
  const rankOf = (claim: Claim): string =>
    `${usual === undefined || lengthOf(claim) === usual ? 0 : 1} ${ageOf(claim, byCidr)}`;
  for (const [cidr, rivals] of Map.groupBy(claims, (one) => one.cidr)) {
    const [first, ...later] = rivals.toSorted((a, b) => compareTexts(rankOf(a), rankOf(b)));
    if (first === undefined) continue;
    wanted.set(cidr, first);
    for (const { node } of later) {
      faults.push({ node, message: `podCIDR ${cidr} is that of node ${first.node} too; it leads there` });
    }
  }
  for (const { loser, winner } of overlapsOf([...wanted.values()], rankOf)) {
    wanted.delete(loser.cidr);
    const message = `podCIDR ${loser.cidr} overlaps ${winner.cidr} of node ${winner.node}; delete one of the two Nodes, so that it gets another`;
    faults.push({ node: loser.node, message });
  }
  const routes = [...wanted].map(([cidr, { node, gatewayIp }]) => [cidr, { node, cidr, gatewayIp }] as const);
  return { wanted: new Map(routes), faults, notKept };
}

/** Whether routes to one network lead to a node, and none leads elsewhere. */
export function isLedTo({ internalIp }: Pick<RouteNode, 'internalIp'>, routes: readonly VpcRoute[] = []): boolean {
  const leading = routes.filter((route) => !isOff(route));
  return leading.length > 0 && leading.every(({ gatewayIp }) => gatewayIp === internalIp);
}

type Claim = WantedRoute & { readonly createdAt: string };

/**
 * The length of most networks; undefined: two are as frequent. One of another length is no block of the allocator: it loses
 * against those that overlap it, so that a Node cannot take the routes of others by the network that it registers.
 */
function usualLengthOf(claims: readonly Claim[]): number | undefined {
  const byLength = [...Map.groupBy(claims, lengthOf)].map(([length, its]) => ({ length, count: its.length }));
  const [first, second] = byLength.toSorted((one, other) => other.count - one.count);
  return first?.count === second?.count ? undefined : first?.length;
}

function lengthOf({ cidr }: Claim): number {
  return Number(cidr.slice(cidr.indexOf('/') + 1));
}

/** A Node with a route comes before one without, then the older one. */
function ageOf({ gatewayIp, cidr, createdAt, node }: Claim, byCidr: ReadonlyMap<string, readonly VpcRoute[]>): string {
  const isRouted = byCidr.get(cidr)?.some((route) => route.gatewayIp === gatewayIp) === true;
  return `${isRouted ? 0 : 1} ${createdAt} ${node}`;
}

/** Finds networks that share addresses with others: of two the route of the smaller would take packets of the larger. */
function overlapsOf(
  claims: readonly Claim[],
  rankOf: (claim: Claim) => string,
): readonly { readonly loser: Claim; readonly winner: Claim }[] {
  const ranges = claims.flatMap((claim) => {
    const range = ipv4RangeOf(claim.cidr);
    return range === undefined ? [] : [{ ...range, claim }];
  });
  ranges.sort((one, other) => one.start - other.start || other.end - one.end);
  const found: { readonly loser: Claim; readonly winner: Claim }[] = [];
  let last: (typeof ranges)[number] | undefined;
  for (const one of ranges) {
    if (last === undefined || last.end <= one.start) {
      last = one;
      continue;
    }
    const isLastFirst = compareTexts(rankOf(last.claim), rankOf(one.claim)) <= 0;
    found.push(isLastFirst ? { loser: one.claim, winner: last.claim } : { loser: last.claim, winner: one.claim });
    if (!isLastFirst) last = one;
  }
  return found;
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
    return `${outsideMessage(cidr, outside)}; add it there, or delete the Node so that it gets another`;
  }
  return internalIp === undefined
    ? `podCIDR ${cidr} leads nowhere: the Node has no IPv4 address of type InternalIP`
    : undefined;
}

const SHOWN_CHARS = 40;

function outsideMessage(cidr: string, clusterCidrs: readonly string[]): string {
  return `podCIDR ${cidr} is in no network of --cluster-cidr, ${clusterCidrs.join(', ')}`;
}

/** `nodes` have the address that the route leads to. */
function removalOf(route: VpcRoute, nodes: readonly RouteNode[]): readonly RouteRemoval[] {
  if (nodes.length === 0) return [{ route, why: 'gone' }];
  const hasNetwork = nodes.every(({ podCidrs }) => podCidrs.some((cidr) => parseCidr(cidr)?.family === 4));
  // A node that registered again may get the same network: until it has one, its Pods keep the route.
  return hasNetwork ? [{ route, why: 'moved' }] : [];
}
