import type { AddressRequest, NodeSupply } from '../index/node-supply.ts';
import type { NodeView } from '../index/scheduler-index.ts';
import type { SubnetAvailability } from '../index/subnet-availability.ts';
import type { FitContext, Refusal } from './fit-context.ts';

/**
 * Decides whether a node can get the addresses for a Pod: from its free addresses, else from what its subnets have
 * left. A Pod with a static address needs a new address even if the node has free ones, unless its address exists
 * already. `isTransient` is true while cloud calls for the node are pending.
 */
export function subnetRefusal(context: FitContext, view: NodeView, isTransient: boolean): Refusal | undefined {
  const { availability } = context;
  const { supply } = view;
  if (availability === undefined || supply === undefined) return undefined;
  const request = addressRequestOf(context, view, supply);
  if (request.count <= 0 || availability.canProvide(supply, request)) return undefined;
  const known = context.reasonsBySources.get(supply.sources);
  const reason = known ?? `InsufficientIPorENI (${renderSources(availability, supply, request)})`;
  if (known === undefined) context.reasonsBySources.set(supply.sources, reason);
  return { reason, isUnresolvable: false, isTransient };
}

function addressRequestOf(context: FitContext, view: NodeView, supply: NodeSupply): AddressRequest {
  const { demand, subnetIds, reservation, holders } = context;
  if (demand.routeIps === 0) return NOTHING;
  if (demand.isStatic) {
    // What any node holds is moved from there: it needs no other address.
    if (holders.size > 0 || view.capacity?.route.keys.has(demand.key) === true) return NOTHING;
    return { count: 1, subnetIds };
  }
  const ownUsage = reservation?.nodeName === view.name ? reservation.demand.routeIps : 0;
  // The node's own shortfall is already subtracted from its subnets. An eviction on the node first reduces that
  // shortfall.
  const count = Math.max(0, demand.routeIps - ownUsage - supply.spare) - supply.shortfall;
  return { count, subnetIds };
}

const NOTHING: AddressRequest = { count: 0, subnetIds: undefined };
/** Subnets named in one reason. More would make the events of Pods too long. */
const SHOWN = 3;

function renderSources(availability: SubnetAvailability, supply: NodeSupply, { subnetIds }: AddressRequest): string {
  const sources = subnetIds ?? availability.sourcesOf(supply);
  if (sources.length === 0) return `no ENI with room, and no subnet in ${supply.zone} for another`;
  const shown = sources.slice(0, SHOWN).map((id) => renderSubnet(availability, supply, id));
  const more = sources.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? `, ${more} more subnets likewise` : ''}`;
}

function renderSubnet(availability: SubnetAvailability, supply: NodeSupply, id: string): string {
  const published = availability.supplyOf(id);
  if (published === undefined) return `${id} is not published by ipamd`;
  const left = availability.leftIn(id);
  const forEni = left > 0 && !supply.enis.some(({ subnetId }) => subnetId === id) ? ', a new ENI takes one itself' : '';
  return `${id} has ${left} of ${published.total} addresses left${forEni}`;
}
