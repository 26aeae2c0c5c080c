import { NetlinkError } from '../../netlink/netlink-error.ts';
import { joinLimited } from '../../runtime/limit-text.ts';
import type { NodeEvents } from '../events/node-events.ts';
import { foreignExclusiveOffers } from '../exclusive/decide-exclusive-publication.ts';
import { type Offer, splitWholeEnis } from '../journal/journal-content.ts';
import type { Supply, SupplyRefusal } from '../journal/supply.ts';
import type { AgentParts } from '../state/ports.ts';
import { foreignOffers } from './decide-publication.ts';
import type { ObservedNec } from './publication.ts';
import type { refuseSupply } from './refuse-supply.ts';
import { retainEnisInUse } from './retain-enis-in-use.ts';
import type { SupplyEvent } from './supply-source.ts';

/** Dependencies of accepting supply. */
export type AcceptSupplyDeps = Pick<AgentParts, 'state' | 'journal' | 'metrics' | 'log' | 'operationLog'> & {
  /** '' accepts supply for any node. */
  readonly nodeName: string;
  /** Name of the journal; present where the agent publishes in the supply's object. */
  readonly life?: string;
  /** Records events for people. */
  readonly events?: NodeEvents;
  /** Takes out what the node must not get. */
  readonly refuse: (supply: Supply) => ReturnType<typeof refuseSupply>;
  /** Called when the kernel may have to follow. */
  readonly supplyChanged: () => void;
};

/**
 * Puts a supply in force, or reports why not. What is in force stays until a better one comes.
 * @returns `unchecked` when the kernel could not be read, so that nothing was decided: the same event is due again.
 */
export function acceptSupply(deps: AcceptSupplyDeps, event: SupplyEvent): 'accepted' | 'undecided' {
  // Whatever the object says now, the agent's own fields may have to follow.
  deps.state.demandChanged.notify();
  if (event.kind === 'invalid') {
    // Its source has logged the fault.
    deps.metrics.supplyErrors.inc();
    deps.operationLog.report('supply', () => ({ text: 'it cannot be read, see the log', isFailure: true }));
    return 'accepted';
  }
  if (!isForNode(event.supply, deps.nodeName)) {
    deps.metrics.supplyErrors.inc();
    deps.log.error('supply is for another node, refused', { for: event.supply.nodeName, nodeName: deps.nodeName });
    const text = `for ${event.supply.nodeName}, not for ${deps.nodeName}: refused`;
    deps.operationLog.report('supply', () => ({ text, isFailure: true }));
    return 'accepted';
  }
  if (event.observed !== undefined && event.observed.spec.life !== deps.life) {
    // Offers and writes of an agent with another journal may still be on their way: our own first write makes them
    // void, and then this object comes again.
    deps.log.info('supply is not used before the first write of this agent', { epoch: event.supply.epoch });
    return 'accepted';
  }
  const checked = tryRefuse(deps, event.supply);
  if (checked === undefined) return 'undecided';
  reportRefusals(deps, checked.refusals);
  applyChecked(deps, event, checked.supply);
  return 'accepted';
}

/** Returns what of a supply is allowed; undefined when the kernel could not be read. */
function tryRefuse({ refuse, log }: AcceptSupplyDeps, supply: Supply): ReturnType<typeof refuseSupply> | undefined {
  try {
    return refuse(supply);
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    log.warn('the links and addresses of the node were not read', { epoch: supply.epoch, error });
    return undefined;
  }
}

function applyChecked(deps: AcceptSupplyDeps, event: SupplyEvent & { readonly kind: 'supply' }, allowed: Supply): void {
  const { state } = deps;
  const supply = retainEnisInUse(allowed, state.supply, state.leases.values(), event.supply);
  const result = state.pool.applySupply(supply, event.observed?.spec.observedEpoch);
  if (result.kind === 'distrusted') {
    reportDistrust(deps, result.epoch, result.inForce);
    // Whatever became of the supply, what is published now is registered; what is missing may be so since before.
    state.acceptRegistered(joined(state.supply?.registeredIps, supply.registeredIps));
    return;
  }
  state.distrusted = undefined;
  state.exclusivePool.applySupply(supply.direct?.enis ?? []);
  state.acceptRegistered(supply.registeredIps);
  // With the role uplinks the offers in the object are ipamd's.
  if (event.observed !== undefined && state.role === 'full') withdrawForeignOffers(deps, event.observed);
  // In the cluster our own writes come back to us; they change nothing.
  const isChanged = JSON.stringify(supply) !== JSON.stringify(state.supply);
  if (isChanged) reportTakenOver(deps, supply);
  if (!isChanged) {
    // It is not on record yet: the disk was full.
    if (state.supply !== undefined && deps.journal.load().supply !== state.supply) recordSupply(deps, state.supply);
    return;
  }
  const before = state.supply;
  state.supply = supply;
  recordSupply(deps, supply);
  // What load balancers have of the node changes nothing in the kernel.
  if (isSameApart(supply, before)) return;
  deps.log.info('supply in force', {
    epoch: supply.epoch,
    enis: supply.enis.map(({ eniId }) => eniId),
    added: result.added.length,
    dropped: result.dropped,
    missing: result.missing,
  });
  deps.operationLog.report('supply', () => ({
    text: `in force: epoch ${supply.epoch}, ${supply.enis.length} ENIs, ${result.added.length} addresses more, ${result.dropped.length} less`,
  }));
  state.changed.notify();
  deps.supplyChanged();
}

/** Reports each refusal once, as long as it lasts. A refused ENI is a problem of that ENI alone; the others serve. */
function reportRefusals(
  { state, metrics, log, events, operationLog }: AcceptSupplyDeps,
  refusals: readonly SupplyRefusal[],
): void {
  const known = new Set(state.refusals.map(({ eniId, text }) => `${eniId}: ${text}`));
  for (const { eniId, text } of state.refusals)
    if (state.eniProblems.get(eniId)?.text === text) state.eniProblems.delete(eniId);
  state.refusals = refusals;
  for (const { eniId, ip, text } of refusals) {
    if (ip === undefined) state.eniProblems.set(eniId, { eniId, kind: 'refused', text });
    const message = `${eniId}: ${text}`;
    if (known.has(message)) continue;
    metrics.supplyErrors.inc();
    log.error('part of the supply is refused', { eniId, ip, why: text });
    operationLog.report('supply', () => ({ text: message, isFailure: true }));
  }
  const added = refusals.map(({ eniId, text }) => `${eniId}: ${text}`).filter((message) => !known.has(message));
  if (added.length > 0) events?.report('Warning', 'SupplyRefused', joinLimited(added, '; '));
}

/** Reports each pair of epochs once: the object changes for other reasons too. */
function reportDistrust(
  { state, metrics, log, events, operationLog }: AcceptSupplyDeps,
  epoch: number,
  inForce: number,
): void {
  const text = `supply epoch ${epoch} is below ${inForce}, which was in force: tke-eni-ipamd has to describe the cloud again`;
  if (state.distrusted === text) return;
  state.distrusted = text;
  metrics.supplyErrors.inc();
  log.error('supply is older than the one in force, refused', { epoch, inForce });
  operationLog.report('supply', () => ({ text, isFailure: true }));
  events?.report('Warning', 'SupplyDistrusted', text);
}

function reportTakenOver({ state, log, events, operationLog }: AcceptSupplyDeps, supply: Supply): void {
  const known = new Set((state.supply?.takenOver ?? []).map(({ ip, leaseKey }) => `${ip} ${leaseKey}`));
  for (const { ip, leaseKey } of supply.takenOver ?? []) {
    if (known.has(`${ip} ${leaseKey}`)) continue;
    const lease = state.leases.get(leaseKey);
    const text = `${ip} is no longer on this node, but the sandbox ${leaseKey} of ${lease?.podNamespace}/${lease?.podName} has it: its routes are taken away`;
    log.warn('a kept address was taken over', { ip, leaseKey, podUid: lease?.podUid });
    operationLog.report('supply', () => ({ text, isFailure: true }));
    events?.report('Warning', 'AddressTakenOver', text);
  }
}

/**
 * Withdraws what the object offers without a record here. This runs in the same turn of the event loop in which the
 * addresses became free, so no Pod can get them before.
 */
function withdrawForeignOffers(
  { state, journal, metrics, log, events }: AcceptSupplyDeps,
  observed: ObservedNec,
): void {
  const [whole, single] = splitWholeEnis(journal.load().offers ?? []);
  const offers = new Map(single.map((offer): [string, Offer] => [offer.ip, offer]));
  const addresses = foreignOffers(state.pool.state, offers, observed);
  const enis =
    observed.exclusive === undefined
      ? []
      : foreignExclusiveOffers(state.exclusivePool.state, whole, observed.exclusive);
  const foreign = [...addresses, ...enis];
  if (foreign.length === 0) return;
  const named = [...addresses.map(({ ip }) => ip), ...enis.map(({ eniId }) => eniId)];
  log.warn('the NodeENIConfig has offers that this agent did not make, out of use until it removes them', { named });
  events?.report('Warning', 'OfferForeign', `spec offers ${named.join(', ')} for release, which this agent did not`);
  state.pool.withdraw(addresses.map(({ ip }) => ip));
  state.letGo(addresses.map(({ ip }) => ip));
  state.exclusivePool.setOffered(enis, true);
  try {
    journal.putOffers(foreign);
  } catch (error) {
    metrics.journalErrors.inc();
    log.error('offers were not written to the journal, they are read from the object again', { error });
  }
}

/**
 * Returns the supply with nothing to lease: it only shows on which ENI and of which assignment each address is. It is
 * for an object that an agent with a lost journal may still write to, and that may contain offers of that agent.
 */
export function withheld(supply: Supply): Supply {
  const enis = supply.enis.map((eni) => ({
    ...eni,
    addresses: eni.addresses.map((address) => ({ ...address, state: 'releasing' as const })),
  }));
  if (supply.direct === undefined) return { ...supply, enis };
  const wholeEnis = supply.direct.enis.map((eni) => ({ ...eni, state: 'detaching' as const }));
  return { ...supply, enis, direct: { ...supply.direct, enis: wholeEnis } };
}

/** Returns the addresses of both lists; undefined when there is none. */
function joined(one: Supply['registeredIps'], other: Supply['registeredIps']): Supply['registeredIps'] {
  return one === undefined ? other : [...new Set([...one, ...(other ?? [])])];
}

/** Reports whether two supplies differ at most in what load balancers have as targets. */
function isSameApart(one: Supply, other: Supply | undefined): boolean {
  const textOf = ({ registeredIps: _targets, ...rest }: Supply): string => JSON.stringify(rest);
  return other !== undefined && textOf(one) === textOf(other);
}

/** Reports whether a supply is for this node; without a name of the node any supply is. */
export function isForNode(supply: Supply, nodeName: string): boolean {
  return nodeName === '' || supply.nodeName === nodeName;
}

/**
 * Records the supply. Without the record a restart begins with the supply before, and gets this one from its source
 * again.
 */
function recordSupply({ journal, metrics, log }: AcceptSupplyDeps, supply: Supply): void {
  try {
    journal.putSupply(supply);
  } catch (error) {
    metrics.journalErrors.inc();
    log.error('the supply was not written to the journal, continuing', { error });
  }
}
