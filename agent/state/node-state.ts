import type { EniPlace } from '../../dataplane/find-nic.ts';
import type { Family } from '../../dataplane/ip-prefix.ts';
import type { EniNetwork, PodNetwork, RuleMode } from '../../dataplane/network.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import { ExclusiveEniPool } from '../exclusive/exclusive-eni-pool.ts';
import type { FastPathChoice } from '../fast-path/choose-fast-path.ts';
import { type Cooldown, type EniRecord, type JournalContent, splitWholeEnis } from '../journal/journal-content.ts';
import { type Lease, type LeasedNic, type LeaseKey, type LeasePlugin, leaseKey } from '../journal/lease.ts';
import { bridgePodNetworkOf, exclusivePodNetworkOf, podNetworkOf } from '../journal/pod-network.ts';
import { claimKey, ON_LINK_ENI_ID, type Supply, type SupplyRefusal } from '../journal/supply.ts';
import type { HostLink } from '../node/host-link.ts';
import type { MasqueradeChoice } from '../pod-cidr/masquerade.ts';
import { formerBlocks, isPodCidrId, podCidrSupply, usableBlocks } from '../pod-cidr/pod-cidr-supply.ts';
import type { OccupiedNetwork } from '../pod-cidr/refuse-pod-cidrs.ts';
import type { WaitingAdd } from '../pods/count-waiting.ts';
import { type NetworkModeLookup, NO_NETWORK_MODE_LOOKUP } from '../pods/network-mode-lookup.ts';
import { NO_POD_FINDINGS, type PodFindings } from '../pods/pod-findings.ts';
import { NO_STATIC_IP_LOOKUP, type StaticIpLookup } from '../pods/static-ip-lookup.ts';
import { awaitsProof, type PodFinding, type ShownPods } from '../pool/brief.ts';
import { IpPool } from '../pool/ip-pool.ts';
import {
  heldBack,
  NOTHING_REGISTERED,
  noteIdle,
  type RegisteredAddresses,
  withPublished,
} from '../pool/registered-addresses.ts';
import { InflightAdds } from './inflight-adds.ts';

const NONE_IDLE: ReadonlyMap<string, undefined> = new Map();

/** Why an ENI of the supply serves no Pod now. */
type EniProblem = {
  readonly eniId: string;
  readonly kind: 'missing' | 'conflict' | 'undone' | 'refused';
  readonly text: string;
};

/** What the agent does on its node: all of it, or ENIs alone, for Pods that another program wires. */
type AgentRole = 'full' | 'uplinks';

/**
 * The agent's state, in memory: the journal's content, and what was observed since. This process is the only writer, so
 * the fields are plain; every change that must survive goes to the journal first.
 */
export class NodeState {
  readonly pool = new IpPool();
  /** Addresses of the node's podCIDR, for GlobalRoute Pods. Each block stands in the place of an ENI. */
  readonly bridgePool = new IpPool();
  /** Blocks of the node as its Node object, or `--pod-cidr`, has them now, `address/length`. */
  podCidrs: readonly string[] = [];
  /** Addresses of type InternalIP of the Node object; empty while it was not read. */
  nodeIps: readonly string[] = [];
  /** How many Pods the Node can run; undefined while it was not read. */
  maxPods: number | undefined;
  /** Networks in which none of the blocks may be, as last observed. */
  occupied: readonly OccupiedNetwork[] = [];
  /** Blocks that are in one of these, with the reason: no new Pod gets an address of them. */
  refusedBlocks: ReadonlyMap<string, string> = new Map();
  /** The last ADD found no address of a block. */
  isBlockFull = false;
  /** A GlobalRoute Pod is, or was, on this node in the life of this process: the bridge is part of the plan. */
  isBridgeUsed = false;
  /** Pods whose annotation and configuration name no network are on the bridge. */
  isBridgeDefault = false;
  /** Blocks that the last pass set up. */
  preparedBlocks: ReadonlySet<string> = new Set();
  /** Whether the agent masquerades their packets; undefined: not decided yet. */
  masquerade: MasqueradeChoice | undefined;
  /** Addresses of the blocks that no Pod gets, because something else than a lease may have them. */
  heldIps: ReadonlySet<string> = new Set();
  /** Why the last pass did not set them up. */
  bridgeProblem: string | undefined;
  /** ENIs that Pods get as a whole. */
  readonly exclusivePool = new ExclusiveEniPool();
  /** Addresses that are targets of load balancers. */
  #registered: RegisteredAddresses = NOTHING_REGISTERED;
  /** How long such an address waits without a Pod, milliseconds; 0: not at all. */
  registeredWaitMs = 0;
  /** Whole ENIs whose interface is in the host's namespace, as last observed. */
  readonly exclusiveNics = new Map<string, HostLink>();
  /** Name and MTU that the interface of a whole ENI had before the last lease that this agent ended. */
  readonly formerNics = new Map<string, Pick<LeasedNic, 'hostName' | 'mtu'>>();
  readonly leases = new Map<LeaseKey, Lease>();
  /** Pending leases whose kernel state was just written and is being verified. */
  readonly wired = new Set<LeaseKey>();
  /** Attachments that live and whose sandbox no runtime listed at the last collection. */
  unlisted: ReadonlySet<LeaseKey> = new Set();
  /** Attachments whose CNI call may still be going on in other plugins: their links have no part in the fast path yet. */
  readonly newLinks = new Set<LeaseKey>();
  /** Decided once per ENI; held while the supply lists the ENI or a lease uses it. */
  readonly eniRecords = new Map<string, EniRecord>();
  /** ENIs whose link is on this node. */
  readonly enis = new Map<string, EniNetwork>();
  /** ENIs that may serve a new Pod: the link exists, the table is set up, nothing foreign is in it. */
  readonly readyEnis = new Set<string>();
  /** MTU of the links of Pods with addresses of the primary interface, bytes; undefined until that was found. */
  onLinkMtu: number | undefined;
  readonly eniProblems = new Map<string, EniProblem>();
  /** What of the supply the node did not take. */
  refusals: readonly SupplyRefusal[] = [];
  readonly inflightAdds = new InflightAdds();
  /** ENIs as last planned, also those whose link is missing. */
  plannedEnis: readonly EniNetwork[] = [];
  /** As last planned by an agent before this one, in this boot. */
  enisBefore: readonly EniPlace[] = [];
  /** Notified when the demand for addresses may have changed. */
  readonly demandChanged: ChangeSignal;
  /** Notified when an address or an ENI may have become usable. */
  readonly changed: ChangeSignal;
  supply: Supply | undefined;
  /** ADDs that wait for an address. */
  readonly addsWaiting = new Map<LeaseKey, WaitingAdd>();
  /** ADDs that wait for a whole ENI of the pool. */
  readonly exclusiveAddsWaiting = new Map<LeaseKey, WaitingAdd>();
  /** Why the newest supply is not put in force; undefined when it is. */
  distrusted: string | undefined;
  /** Returns what supply waits for; undefined when it is complete. */
  supplyWaitsFor: () => string | undefined = () => undefined;
  /** Looks up whether a Pod has a static IP. */
  staticIpLookup: StaticIpLookup = NO_STATIC_IP_LOOKUP;
  /** Looks up how a Pod is connected to the VPC. */
  networkModeLookup: NetworkModeLookup = NO_NETWORK_MODE_LOOKUP;
  /** Looks at the Pods of leases that end. */
  podFindings: PodFindings = NO_POD_FINDINGS;
  /** Runs a repair pass that begins after this call. */
  runPass: (cause: string) => Promise<unknown> = async () => undefined;
  /** Requests a repair pass soon. */
  kickPass: (cause: string) => void = () => {};
  /** Takes away at once what refuses packets to addresses that another node may get. Never throws. */
  letGo: (ips: readonly string[]) => void = () => {};
  /** Runs work between repair passes. */
  runExclusive: <T>(work: () => Promise<T>) => Promise<T> = (work) => work();
  ruleMode: RuleMode = 'compact';
  /** `uplinks`: another program wires the Pods; here are ENIs, and rules for all addresses of theirs. */
  readonly role: AgentRole;
  /** How packets of known flows are forwarded, since when (monotonic). */
  fastPath: FastPathChoice & { readonly sinceMs: number } = { wanted: 'off', mode: 'off', why: '', sinceMs: 0 };
  /** Addresses of Pods that request an EIP, sorted; used with `--egress=node` only. */
  egressExempt: readonly string[] = [];
  /** Ranges of Services as the cluster has them; empty: not known, or not read. `--service-cidrs` is before them. */
  serviceCidrs: readonly string[] = [];
  /** Every conflict that was logged. */
  reportedConflicts: readonly string[] = [];
  /** Those of them that stop packets; empty when there are none. */
  conflicts: readonly string[] = [];
  /** What every Pod needs and another program keeps undoing; undefined when all of it stands. */
  undone: string | undefined;
  /** Grows with each change of the kernel outside repair: a repair pass that observed before it has to run again. */
  kernelGeneration = 0;

  /** `clock` is used for the timeouts of the signals. */
  constructor(clock: Clock, role: AgentRole = 'full') {
    this.role = role;
    this.demandChanged = new ChangeSignal(clock);
    this.changed = new ChangeSignal(clock);
  }

  /** Takes over the content of a journal. */
  restore(content: JournalContent): void {
    for (const lease of content.leases) this.leases.set(leaseKey(lease), lease);
    for (const record of content.enis) this.eniRecords.set(record.eniId, record);
    this.supply = content.supply;
    this.acceptRegistered(content.supply?.registeredIps);
    if (content.supply !== undefined) this.pool.applySupply(content.supply);
    const [whole, cooldowns] = splitWholeEnis(content.cooldowns);
    const [wholeOffers, offers] = splitWholeEnis(content.offers ?? []);
    this.pool.adopt(content.leases.filter((lease) => lease.plugin !== 'direct-eni' && !isOfBlock(lease)));
    this.pool.adoptCooldowns(cooldowns.filter(({ eniId }) => !isPodCidrId(eniId)));
    this.#restoreBridge(content.leases, cooldowns);
    this.pool.adoptOffers(offers);
    this.exclusivePool.applySupply(content.supply?.direct?.enis ?? []);
    this.exclusivePool.adopt(content.leases);
    this.exclusivePool.adoptCooldowns(whole);
    this.exclusivePool.setOffered(wholeOffers, true);
    if (content.ruleMode !== undefined) this.ruleMode = content.ruleMode;
  }

  /** Takes over which addresses load balancers have as targets: no other Pod gets them from now on. Idempotent. */
  acceptRegistered(ips: readonly string[] | undefined): void {
    const published = this.registeredWaitMs === 0 ? undefined : ips;
    this.#setRegistered(withPublished(this.#registered, published, this.registeredIdle()));
  }

  /** Ends the wait of those that waited for long enough; returns them. */
  endRegistered(nowMs: number): readonly string[] {
    const idle = this.registeredIdle();
    const { state, ended } = noteIdle(this.#registered, idle, { nowMs, limitMs: this.registeredWaitMs });
    this.#setRegistered(state);
    return ended;
  }

  /** The addresses without a Pod that load balancers have as targets, with the time at which their Pods released them. */
  registeredIdle(): ReadonlyMap<string, number | undefined> {
    const { published } = this.#registered;
    if (published === undefined || published.size === 0) return NONE_IDLE;
    const byPrimary = new Map(
      [...this.exclusivePool.state.values()].flatMap((eni) => eni.primary.map(({ ip }) => [ip, eni])),
    );
    return new Map(
      [...published].flatMap((ip): readonly (readonly [string, number | undefined])[] => {
        const address = this.pool.state.addresses.get(ip) ?? this.bridgePool.state.addresses.get(ip);
        if (address !== undefined)
          return address.state === 'leased' || address.claim !== undefined ? [] : [[ip, address.freedAtMs]];
        const eni = byPrimary.get(ip);
        return eni === undefined || eni.use === 'leased' || eni.claim !== undefined ? [] : [[ip, eni.freedAtMs]];
      }),
    );
  }

  /** How many addresses wait. */
  waitingCount(): number {
    const held = heldBack(this.#registered);
    return held === undefined ? 0 : [...this.registeredIdle().keys()].filter((ip) => held.has(ip)).length;
  }

  #setRegistered(state: RegisteredAddresses): void {
    if (state === this.#registered) return;
    this.#registered = state;
    const ips = heldBack(state);
    this.pool.setRegistered(ips);
    this.bridgePool.setRegistered(ips);
    this.exclusivePool.setRegistered(ips);
    this.changed.notify();
    this.demandChanged.notify();
  }

  #restoreBridge(all: readonly Lease[], cooldowns: readonly Cooldown[]): void {
    const leases = all.filter(isOfBlock);
    if (leases.length > 0) this.isBridgeUsed = true;
    this.bridgePool.applySupply(podCidrSupply(this.acceptedBlocks()));
    this.bridgePool.adopt(leases);
    this.bridgePool.adoptCooldowns(cooldowns.filter(({ eniId }) => isPodCidrId(eniId)));
  }

  /**
   * Reports whether the agent knows what this node is for: a supply is or was in force, Pods have addresses, or a block of
   * GlobalRoute Pods serves. Before that the agent changes nothing of the node.
   */
  hasPlan(): boolean {
    return this.supply !== undefined || this.leases.size > 0 || this.isBridgeUsed || this.acceptedBlocks().length > 0;
  }

  /** The blocks of the node without those that are refused. */
  acceptedBlocks(): readonly string[] {
    return this.podCidrs.filter((cidr) => !this.refusedBlocks.has(cidr));
  }

  /** The blocks of which new GlobalRoute Pods get addresses. */
  servingBlocks(): readonly string[] {
    return usableBlocks(this.acceptedBlocks());
  }

  /** Blocks that are the node's no more, or are refused, and that Pods still live in. */
  formerBlocks(): readonly string[] {
    return formerBlocks(this.acceptedBlocks(), this.leases.values());
  }

  /** Why no new Pod can be on the bridge for want of a block; undefined when there is one. */
  blockProblem(): string | undefined {
    if (this.servingBlocks().length > 0) return undefined;
    const [refusal] = this.refusedBlocks.values();
    return refusal ?? 'the node has no podCIDR yet';
  }

  /** Families that the node needs: those in which some ENI has an address of its own. IPv4 first. */
  families(): readonly Family[] {
    return familiesOf(this.supply?.enis ?? []);
  }

  /** Families in which packets of Pods pass the node, Pods with whole ENIs included. IPv4 first. */
  familiesOfNode(): readonly Family[] {
    return familiesOf([...(this.supply?.enis ?? []), ...(this.supply?.direct?.enis ?? [])]);
  }

  /**
   * Families that a new Pod gets: those of the ENIs that serve. An ENI that is only retained for its Pods may have a
   * family that the others lack, and then no Pod could be served. Without an ENI that serves, as `families`.
   */
  podFamilies(): readonly Family[] {
    const serving = familiesOf((this.supply?.enis ?? []).filter(({ attached, draining }) => attached && !draining));
    return serving.length > 0 ? serving : this.families();
  }

  /** Returns what a lease holds to its pool. Returns the cooldowns to record. Idempotent. */
  release(
    lease: Lease,
    end: { readonly nowMs: number; readonly cooldownMs: number; readonly finding?: PodFinding },
  ): readonly Cooldown[] {
    const { podNamespace: namespace, podName: name, podUid } = lease;
    const named = name === '' ? {} : { podKey: claimKey({ namespace, name }) };
    const request = { key: leaseKey(lease), podUid, ...named, ...end };
    if (lease.plugin === 'direct-eni') return this.exclusivePool.release(request) ?? [];
    const released = this.#poolOf(lease).release(request);
    return released.kind === 'released' ? released.cooldowns : [];
  }

  /** Reports whether it depends on the API server what the rests after the sandboxes of a Pod are. */
  awaitsProof(podUid: string): boolean {
    const all = [this.pool.state.addresses, this.bridgePool.state.addresses, this.exclusivePool.state];
    return all.some((one) => one.values().some((marks) => awaitsProof(marks, podUid)));
  }

  /** Takes over what the watch of the node's Pods shows. Idempotent. */
  acceptShown(shown: ShownPods): void {
    for (const pool of [this.pool, this.bridgePool, this.exclusivePool]) pool.noteShown(shown);
  }

  /** The API server answered that a Pod has no address, so that its sandboxes failed. Idempotent. */
  acceptFailed(podUid: string): void {
    for (const pool of [this.pool, this.bridgePool, this.exclusivePool]) pool.proveFailed(podUid);
    this.changed.notify();
    this.demandChanged.notify();
  }

  /** Makes the lease the owner of its addresses, or its ENI, again: its end could not be recorded. */
  retain(lease: Lease): void {
    if (lease.plugin === 'direct-eni') this.exclusivePool.adopt([lease]);
    else this.#poolOf(lease).adopt([lease]);
  }

  #poolOf(lease: Lease): IpPool {
    return isOfBlock(lease) ? this.bridgePool : this.pool;
  }

  /** ENIs that may serve a new Pod of this plugin, and the primary interface, if addresses of the pool are its own. */
  servingEnis(plugin: LeasePlugin = 'route-eni'): ReadonlySet<string> {
    // The links of such a Pod are those of another plugin, which makes no route to it.
    if (plugin === 'ipam' || this.onLinkMtu === undefined) return this.readyEnis;
    const isListed = this.supply?.enis.some(({ eniId }) => eniId === ON_LINK_ENI_ID) === true;
    return isListed ? new Set([...this.readyEnis, ON_LINK_ENI_ID]) : this.readyEnis;
  }

  /**
   * Describes the lease for the data plane; undefined when the ENI was never set up, so that nothing of it can exist.
   */
  podNetwork(lease: Lease): PodNetwork | undefined {
    if (lease.plugin === 'direct-eni') return exclusivePodNetworkOf(lease);
    if (lease.plugin === 'bridge') return bridgePodNetworkOf(lease);
    const record = this.eniRecords.get(lease.eniId);
    return record === undefined ? undefined : podNetworkOf(lease, record);
  }
}

/** A lease of an address of a block, which is in the pool of the bridge. */
function isOfBlock({ plugin, eniId }: Lease): boolean {
  return plugin === 'bridge' && eniId !== ON_LINK_ENI_ID;
}

function familiesOf(enis: readonly Pick<Supply['enis'][number], 'eniId' | 'primary'>[]): readonly Family[] {
  const found = new Set(
    enis.flatMap(({ eniId, primary }) => (eniId === ON_LINK_ENI_ID ? [4] : primary.map(({ family }) => family))),
  );
  return ([4, 6] as const).filter((family) => found.has(family));
}
