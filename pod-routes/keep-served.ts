import type { NodeNetworks } from './decide-node-networks.ts';
import { isLedTo, NOT_KEPT_BUT_IN_SERVICE, type RoutePlan } from './decide-routes.ts';
import type { RoutedNode } from './routed-node.ts';
import type { RoutesByPlace } from './routes-elsewhere.ts';

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
