import type { Ask, NodeSupply } from '../index/node-supply.ts';
import type { NodeView } from '../index/scheduler-index.ts';
import type { SubnetLedger } from '../index/subnet-ledger.ts';
import { type FitQuestion, isHolding, type Refusal, subnetsOf } from './fit-question.ts';

/**
 * Decides whether a node can get the addresses for a Pod: from its free addresses, else from what its subnets have
 * left. A Pod with a static address needs a new address even if the node has free ones, unless its address exists
 * already. `isPassing` is true while cloud calls for the node are pending.
 */
export function subnetRefusal(question: FitQuestion, view: NodeView, isPassing: boolean): Refusal | undefined {
  const { ledger } = question;
  const { supply } = view;
  if (ledger === undefined || supply === undefined) return undefined;
  const ask = askOf(question, view, supply);
  if (ask.count <= 0 || ledger.canGive(supply, ask)) return undefined;
  const known = question.ofSubnets.get(supply.sources);
  const reason = known ?? `InsufficientIPorENI (${renderSources(ledger, supply, ask)})`;
  if (known === undefined) question.ofSubnets.set(supply.sources, reason);
  return { reason, isUnresolvable: false, isPassing };
}

function askOf(question: FitQuestion, view: NodeView, supply: NodeSupply): Ask {
  const { demand, kept, nominated, promise, holders } = question;
  const subnetIds = subnetsOf(demand, kept, nominated);
  if (demand.routeIps === 0) return NOTHING;
  if (demand.isStatic) {
    const hasPlace = isHolding(question, view) || view.room?.route.keys.has(demand.key) === true;
    return hasPlace || holders.size > 0 ? NOTHING : { count: 1, subnetIds };
  }
  const own = promise?.nodeName === view.name ? promise.demand.routeIps : 0;
  // The node's own shortfall is already subtracted from its subnets. An eviction on the node first reduces that
  // shortfall.
  const count = Math.max(0, demand.routeIps - own - supply.spare) - supply.debt;
  return { count, subnetIds };
}

const NOTHING: Ask = { count: 0, subnetIds: undefined };
/** Subnets named in one reason. More would make the events of Pods too long. */
const SHOWN = 3;

function renderSources(ledger: SubnetLedger, supply: NodeSupply, { subnetIds }: Ask): string {
  const sources = subnetIds ?? ledger.sourcesOf(supply);
  if (sources.length === 0) return `no ENI with room, and no subnet in ${supply.zone} for another`;
  const shown = sources.slice(0, SHOWN).map((id) => renderSubnet(ledger, supply, id));
  const more = sources.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? `, ${more} more subnets likewise` : ''}`;
}

function renderSubnet(ledger: SubnetLedger, supply: NodeSupply, id: string): string {
  const told = ledger.supplyOf(id);
  if (told === undefined) return `${id} is of no use here`;
  const left = ledger.leftIn(id);
  const forEni = left > 0 && !supply.enis.some(({ subnetId }) => subnetId === id) ? ', a new ENI takes one itself' : '';
  return `${id} has ${left} of ${told.total} addresses left${forEni}`;
}
