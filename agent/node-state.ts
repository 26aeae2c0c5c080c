import type { EniNetwork, PodNetwork, RuleMode } from '../dataplane/network.ts';
import { ChangeSignal } from '../runtime/change-signal.ts';
import { type Clock, systemClock } from '../runtime/clock.ts';
import { AddsUnderWay } from './adds-under-way.ts';
import type { WaitingAdd } from './demand/find-waiting.ts';
import { DirectEniPool } from './direct/direct-eni-pool.ts';
import type { HostLink } from './eni/locate-enis.ts';
import { type Cooldown, type EniRecord, type JournalContent, parted } from './journal/journal-content.ts';
import { type Family, type Lease, type LeaseKey, leaseKey } from './journal/lease.ts';
import { directPodNetworkOf, podNetworkOf } from './journal/pod-network.ts';
import type { Supply } from './journal/supply.ts';
import { type NetworkWord, NO_NETWORK_WORD } from './pods/network-word.ts';
import { NO_POD_WORD, type PodWord } from './pods/pod-word.ts';
import { IpPool } from './pool/ip-pool.ts';

/** Why an ENI of the supply serves nobody now. */
export type EniProblem = { readonly eniId: string; readonly kind: 'missing' | 'conflict'; readonly text: string };

/**
 * What the agent knows, in memory: the journal's content, and beside it what was observed since. One writer (this
 * process), so plain fields; every change that must survive goes to the journal first.
 */
export class NodeState {
  readonly pool = new IpPool();
  /** ENIs that Pods get as a whole. */
  readonly direct = new DirectEniPool();
  /** Those of them whose interface is in the host's namespace, as last seen. */
  readonly directNics = new Map<string, HostLink>();
  readonly leases = new Map<LeaseKey, Lease>();
  /** Pending leases whose kernel state was written a moment ago and is being looked at. */
  readonly wired = new Set<LeaseKey>();
  /** Decided once per ENI; kept while the supply names it or a lease holds it. */
  readonly eniRecords = new Map<string, EniRecord>();
  /** ENIs whose link is here. */
  readonly enis = new Map<string, EniNetwork>();
  /** ENIs that may serve a new Pod: link here, table set up, nobody in its place. */
  readonly readyEnis = new Set<string>();
  readonly eniProblems = new Map<string, EniProblem>();
  readonly addsUnderWay = new AddsUnderWay();
  /** ENIs as they were last planned, those whose link is gone included. */
  plannedEnis: readonly EniNetwork[] = [];
  /** Woken when the agent may want more or fewer addresses. */
  readonly demandChanged: ChangeSignal;
  /** Woken when an address or an ENI may have become usable. */
  readonly changed: ChangeSignal;
  supply: Supply | undefined;
  /** ADDs that found no address and wait. */
  readonly addsWaiting = new Map<LeaseKey, WaitingAdd>();
  /** ADDs that found no whole ENI of the pool and wait. */
  readonly directAddsWaiting = new Map<LeaseKey, WaitingAdd>();
  /** Why the newest supply is not believed; undefined when it is. */
  distrusted: string | undefined;
  /** Says what supply waits for; undefined when it is there. */
  supplyWaitsFor: () => string | undefined = () => undefined;
  /** Says of a Pod whether its address is kept. */
  podWord: PodWord = NO_POD_WORD;
  /** Says how a Pod is joined to the VPC. */
  networkWord: NetworkWord = NO_NETWORK_WORD;
  ruleMode: RuleMode = 'compact';
  /** Addresses of Pods that ask for an EIP; of use with `--egress=node` alone. In order. */
  egressExempt: readonly string[] = [];
  /** Every conflict that the log was told of. */
  reportedConflicts: readonly string[] = [];
  /** Those of them that keep packets from their way; empty when all is well. */
  conflicts: readonly string[] = [];
  /** Grows with each change that we make to the kernel outside repair: a repair that looked before it looks again. */
  kernelGeneration = 0;

  /** `clock` is what the signals wait by. */
  constructor(clock: Clock = systemClock) {
    this.demandChanged = new ChangeSignal(clock);
    this.changed = new ChangeSignal(clock);
  }

  /** Takes over what a journal holds. */
  restore(content: JournalContent): void {
    for (const lease of content.leases) this.leases.set(keyOf(lease), lease);
    for (const record of content.enis) this.eniRecords.set(record.eniId, record);
    this.supply = content.supply;
    if (content.supply !== undefined) this.pool.applySupply(content.supply);
    const [whole, cooldowns] = parted(content.cooldowns);
    const [wholeOffers, offers] = parted(content.offers ?? []);
    this.pool.adopt(content.leases.filter(({ plugin }) => plugin !== 'direct-eni'));
    this.pool.adoptCooldowns(cooldowns);
    this.pool.adoptOffers(offers);
    this.direct.applySupply(content.supply?.direct?.enis ?? []);
    this.direct.adopt(content.leases);
    this.direct.adoptCooldowns(whole);
    this.direct.setOffered(wholeOffers, true);
    if (content.ruleMode !== undefined) this.ruleMode = content.ruleMode;
  }

  /** Families that the node needs: those in which some ENI has an address of its own. IPv4 first. */
  families(): readonly Family[] {
    return familiesOf(this.supply?.enis ?? []);
  }

  /** Families in which packets of Pods go by the node, those with whole ENIs included. IPv4 first. */
  familiesOfNode(): readonly Family[] {
    return familiesOf([...(this.supply?.enis ?? []), ...(this.supply?.direct?.enis ?? [])]);
  }

  /**
   * Families that a new Pod gets: of the ENIs that serve. One that is only kept for the Pods it has may have a family
   * that the others lack, and nobody could be served. With none that serves, as `families`.
   */
  familiesToGive(): readonly Family[] {
    const serving = familiesOf((this.supply?.enis ?? []).filter(({ attached, draining }) => attached && !draining));
    return serving.length > 0 ? serving : this.families();
  }

  /** Gives what a lease holds back to its pool. Returns what is to be recorded of it. Idempotent. */
  release(lease: Lease, times: { readonly nowMs: number; readonly cooldownMs: number }): readonly Cooldown[] {
    const key = keyOf(lease);
    if (lease.plugin === 'direct-eni') return this.direct.release({ key, ...times }) ?? [];
    const released = this.pool.release({ key, ...times });
    return released.kind === 'released' ? released.cooldowns : [];
  }

  /** Holds what a lease holds, again: the end of it could not be recorded. */
  hold(lease: Lease): void {
    if (lease.plugin === 'direct-eni') this.direct.adopt([lease]);
    else this.pool.adopt([lease]);
  }

  /** The lease as the data plane sees it; undefined when the ENI was never set up, so that nothing of it can exist. */
  podNetwork(lease: Lease): PodNetwork | undefined {
    if (lease.plugin === 'direct-eni') return directPodNetworkOf(lease);
    const record = this.eniRecords.get(lease.eniId);
    return record === undefined ? undefined : podNetworkOf(lease, record);
  }
}

function familiesOf(enis: readonly Pick<Supply['enis'][number], 'primary'>[]): readonly Family[] {
  const found = new Set(enis.flatMap((eni) => eni.primary.map(({ family }) => family)));
  return ([4, 6] as const).filter((family) => found.has(family));
}

/** The key of a lease. */
export function keyOf(lease: Pick<Lease, 'containerId' | 'ifName'>): LeaseKey {
  return leaseKey(lease.containerId, lease.ifName);
}
