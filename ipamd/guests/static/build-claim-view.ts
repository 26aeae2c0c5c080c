import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { selectStaticIpConfig } from '../../../crd/select-static-ip-config.ts';
import { type VpcIp, vpcIpName } from '../../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../../crd/vpc-ip-claim.ts';
import { renderFault } from '../../../runtime/decode.ts';
import { StampAges } from '../../../runtime/stamp-ages.ts';
import { findWorkload } from '../../cache/find-workload.ts';
import type { NodeEntry } from '../../cache/node-entry.ts';
import { networkRequestOf, podKeyOf } from '../../cache/pod-facts.ts';
import { VIPS_BY_CLAIM, type VipFacts } from '../../cache/record-facts.ts';
import { VPC_ENIS_BY } from '../../cache/vpc-eni-entry.ts';
import { claimKeyOf } from '../../decide/claim-marks.ts';
import { NECS_BY_CLAIM, NECS_BY_MARKED_IP, readMarkOf } from '../../decide/mark-indexes.ts';
import { isStaticNode } from '../../nodes/decide-policy.ts';
import type { SubnetState } from '../../subnets/subnet-cache.ts';
import type { AddressConflict, ClaimNode, ClaimPod, ClaimView, IpHolder } from './claim-view.ts';
import type { ClaimsTerm } from './claims-term.ts';
import { FreeAddresses } from './find-free-address.ts';
import { findSubnet } from './find-subnet.ts';
import {
  mayHaveSandbox,
  readClaimCalls,
  readClaimLocations,
  readSubnetsWithFreeSlots,
} from './read-claim-locations.ts';
import { readClaimPod } from './read-claim-pod.ts';
import type { ReservationRunner } from './reservation-runner.ts';
import type { ZoneNames } from './zone-names.ts';

/** Name of the index of StaticIPConfigs by namespace: each namespace may have thousands. */
export const CONFIGS_BY_NAMESPACE = 'namespace';

/** How long an address rests before another name may have it: the default of the agents' --ip-cooldown. */
const REST_MS = 120_000;

type RestFacts = Pick<ClaimView, 'locations' | 'pod' | 'retainedForMs'>;

/** Reservations of addresses in the VPC. */
type Reservations = Pick<ReservationRunner, 'isPaused' | 'problemOf'>;

/**
 * Builds the view that the decision about a claim depends on. It remembers times of states that the caches do not
 * contain.
 */
export class ClaimViewBuilder {
  readonly #term: ClaimsTerm;
  readonly #reservations: Reservations;
  readonly #zoneNames: Pick<ZoneNames, 'nameOf'>;
  readonly #retained: StampAges;
  readonly #unreachableSinceMs = new Map<string, number>();
  readonly #startMs: number;
  /** Whether addresses are in use, as last looked at, and when they were last. */
  readonly #uses = new Map<string, { readonly isNow: boolean; readonly lastMs: number }>();
  readonly #free: FreeAddresses;
  readonly #subnetOf = new Map<string, string | undefined>();
  /** The networks that it was found in. */
  #networks = '';
  readonly #releasing = new Map<string, { readonly sinceMs: number; readonly idleSinceMs: number }>();

  constructor(term: ClaimsTerm, reservations: Reservations, zoneNames: Pick<ZoneNames, 'nameOf'>) {
    this.#term = term;
    this.#reservations = reservations;
    this.#zoneNames = zoneNames;
    this.#retained = new StampAges(term.clock);
    this.#startMs = term.clock.monotonicMs();
    this.#free = new FreeAddresses(term.clock);
  }

  /** What may be free again, for claims that wait for an address of their pool. */
  get freed(): Pick<FreeAddresses, 'noteFreed' | 'noteAnyFreed'> {
    return this.#free;
  }

  /** Lists every key that has a claim or should have one. */
  keys(): ReadonlySet<string> {
    const { pods, vips, claims, necs } = this.#term;
    const keys = new Set<string>();
    for (const pod of pods.values()) if (pod.claimInfo !== undefined) keys.add(podKeyOf(pod));
    for (const claim of claims.values()) if (!claim.isRecord) keys.add(claim.key);
    for (const vip of vips.values()) if (!vip.isRecord && vip.podKey !== '') keys.add(vip.podKey);
    for (const { decoded } of necs.values()) for (const key of keysOf(decoded?.status)) keys.add(key);
    return keys;
  }

  /**
   * Notes whether a node is ready, so that time counts from when it ceased to be. Returns the milliseconds since then.
   */
  noteNode(name: string): number {
    const nowMs = this.#term.clock.monotonicMs();
    // A Node that lists lack may run: its addresses are not taken over before it is proved that it is gone.
    if (this.#term.nodes.get(name)?.isReady === true || this.#isReleaseHeld(name)) {
      this.#unreachableSinceMs.delete(name);
      return 0;
    }
    const since = this.#unreachableSinceMs.get(name) ?? nowMs;
    this.#unreachableSinceMs.set(name, since);
    // Not ready since just now: 0 would mean ready.
    return Math.max(1, nowMs - since);
  }

  /** Reports whether a Node is missing without proof that it is gone. */
  #isReleaseHeld(name: string): boolean {
    const { nodes, necs, facts } = this.#term;
    const entry = nodes.get(name) === undefined ? necs.get(name) : undefined;
    return entry !== undefined && facts.departureOf(name, entry) !== 'enough';
  }

  /** Returns the milliseconds until `build` returns why the claim waits; undefined when nothing is pending. */
  waitDueInMs(key: string): number | undefined {
    return this.#term.waits.dueInMs(key);
  }

  /** Returns the Pod of a name, if it needs a claim. */
  podOf(key: string): ClaimPod | undefined {
    const { pods, configs, config, deployments } = this.#term;
    const { namespace } = config;
    const pod = pods.get(key);
    if (pod?.claimInfo === undefined) return undefined;
    const { labels } = pod.claimInfo;
    const rules = [...new Set([pod.namespace, namespace])].flatMap((one) =>
      configs.byIndex(CONFIGS_BY_NAMESPACE, one).flatMap(({ decoded }) => decoded ?? []),
    );
    const rule = selectStaticIpConfig(rules, { namespace: pod.namespace, labels }, namespace);
    return readClaimPod(pod, rule, deployments && findWorkload(pod, deployments.values()));
  }

  /** Returns the faults of the annotations of a Pod without a claim, and its uid; undefined when it has none. */
  unclaimedFaultsOf(key: string): { readonly uid: string; readonly faults: readonly string[] } | undefined {
    const pod = this.#term.pods.get(key);
    if (pod?.claimInfo === undefined || this.podOf(key) !== undefined) return undefined;
    const { faults } = networkRequestOf(pod);
    return faults.length === 0 ? undefined : { uid: pod.uid, faults: faults.map(renderFault) };
  }

  /** Builds the view of this moment. */
  build(key: string, claim: VpcIpClaim | undefined, conflict: AddressConflict | undefined): ClaimView {
    const { config, necs, vips, vpcEnis, subnets, clock, waits, registered } = this.#term;
    const reservations = this.#reservations;
    const named = necs.byIndex(NECS_BY_CLAIM, key);
    const locations = named.flatMap(({ name, decoded }) => readClaimLocations(name, decoded?.status, key));
    const all = subnets.all();
    this.#forgetSubnets(all);
    const pod = this.podOf(key);
    const isReleasing = locations.some((location) => location.isReleasing);
    const problem = reservations.problemOf(key);
    const own = [...vips.byIndex(VIPS_BY_CLAIM, key), ...this.#unreferenced(claim, locations)];
    // It is written once, when a claim is retained: another one is an edit, and is written back.
    const since = this.#retained.firstOf(key, claim?.status?.retainedSince);
    const ownNames = new Set(own.map(({ name }) => name));
    const retainedForMs = this.#retained.ageMs(key, since);
    const restMs = endsWithEni(claim) ? 0 : this.#restMs(key, { locations, pod, retainedForMs });
    if (claim === undefined && locations.length === 0 && own.length === 0) this.#uses.delete(key);
    return {
      key,
      claim: claim && since !== undefined ? { ...claim, status: { ...claim.status, retainedSince: since } } : claim,
      vips: own.flatMap(({ staticObject }): VpcIp | readonly VpcIp[] => staticObject?.decoded ?? []),
      pod,
      locations,
      calls: named.flatMap(({ name, decoded }) => readClaimCalls(name, decoded?.status, key)),
      nodeOf: (name) => this.#nodeOf(name),
      zoneOf: (subnetId) => all.find((one) => one.subnetId === subnetId)?.zone,
      subnetOf: (ip) => this.#findSubnet(ip, all),
      findFree: this.#free.find,
      holderOf: (ip) => (ownNames.has(vpcIpName(ip)) ? this.#markedHolderOf(ip, key) : this.#holderOf(ip, key)),
      ...(registered === undefined ? {} : { isRegistered: (ip) => registered.isHeld(ip) }),
      wait: waits.of(key),
      conflict,
      hasEni: vpcEnis.byIndex(VPC_ENIS_BY.claim, key).length > 0,
      releasingForMs: isReleasing ? this.#releasingForMs(key, pod?.nodeName ?? '') : this.#endReleasing(key),
      ...(restMs > 0 ? { restMs } : {}),
      retainedForMs,
      subnets: all,
      isOffered: (subnetId, isNominated) => subnets.isOffered(subnetId, isNominated),
      reservesStatic: config.reserveKeptAddresses && !reservations.isPaused,
      ...(problem === undefined ? {} : { reservationProblem: problem }),
      defaultExpiredMs: config.claimExpiredDurationMs,
      takeOverAfterMs: config.staticTakeoverAfterMs,
      nowText: new Date(clock.nowMs()).toISOString(),
    };
  }

  /** Finds the subnet of an address; once for all claims, as a pool has thousands. */
  #findSubnet(ip: string, subnets: readonly SubnetState[]): string | undefined {
    if (!this.#subnetOf.has(ip)) this.#subnetOf.set(ip, findSubnet(ip, subnets));
    return this.#subnetOf.get(ip);
  }

  /** Forgets in which subnets addresses are once the networks are others. */
  #forgetSubnets(subnets: readonly SubnetState[]): void {
    const networks = subnets.map(({ subnetId, cidr, zone }) => `${subnetId} ${cidr} ${zone}`).join();
    if (networks === this.#networks && this.#subnetOf.size < MAX_ADDRESSES) return;
    this.#networks = networks;
    this.#subnetOf.clear();
    this.#free.noteAnyFreed();
  }

  #nodeOf(name: string): ClaimNode {
    const { config, nodes, necs } = this.#term;
    const node = nodes.get(name);
    const { spec, status } = necs.get(name)?.decoded ?? {};
    const isSuper = node?.isInstance === false;
    return {
      exists: node !== undefined,
      ...(isSuper ? ({ isSuper } as const) : {}),
      enableStaticIp: isSuper ? isStaticNode(node, config.enableStaticIp) : spec?.enableStaticIP === true,
      zone: isSuper ? this.#zoneOfSuper(node) : status?.zone,
      unreachableForMs: this.noteNode(name),
      subnetsWithFreeSlots: readSubnetsWithFreeSlots(status, spec?.maxIPPerENI),
    };
  }

  /** Returns the label of the zone of a Pod's super node that no subnet has: it may be the number of a zone. */
  unknownZoneOf(key: string): string | undefined {
    const { pods, nodes } = this.#term;
    const { zoneLabel } = nodes.get(pods.get(key)?.nodeName ?? '') ?? {};
    return zoneLabel === undefined || this.#isZoneOfSubnet(zoneLabel) ? undefined : zoneLabel;
  }

  #isZoneOfSubnet(name: string): boolean {
    return this.#term.subnets.all().some(({ zone }) => zone === name);
  }

  /** Returns the name of a super node's zone; undefined where its label names none that is known. */
  #zoneOfSuper({ zoneLabel }: NodeEntry): string | undefined {
    if (zoneLabel === undefined) return undefined;
    return this.#isZoneOfSubnet(zoneLabel) ? zoneLabel : this.#zoneNames.nameOf(zoneLabel);
  }

  /** Lists VpcIPs that name no claim, because they were edited, of addresses that the claim or its mark on an ENI names. */
  #unreferenced(claim: VpcIpClaim | undefined, locations: ClaimView['locations']): readonly VipFacts[] {
    const ofMarks = locations.flatMap(({ ip }) => (ip === undefined ? [] : [vpcIpName(ip)]));
    const names = new Set([...ofMarks, ...(claim?.status?.vpcIPs ?? [])]);
    const found = [...names].flatMap((name) => this.#term.vips.get(name) ?? []);
    return found.filter(({ isRecord, podKey }) => !isRecord && podKey === '');
  }

  #holderOf(ip: string, key: string): IpHolder | undefined {
    const { vips, pods } = this.#term;
    const vip = vips.get(vpcIpName(ip));
    if (vip !== undefined && !vip.isRecord && vip.podKey !== key) return { kind: 'claim', key: vip.podKey };
    const isOfOther = vip?.isRecord === true && vip.podKey !== key;
    if (isOfOther && pods.get(vip.podKey)?.uid === vip.podUid) return { kind: 'pod', key: vip.podKey };
    return this.#markedHolderOf(ip, key);
  }

  /** Returns the other claim that an ENI has the address for. */
  #markedHolderOf(ip: string, key: string): IpHolder | undefined {
    const { necs } = this.#term;
    for (const { decoded } of necs.byIndex(NECS_BY_MARKED_IP, ip)) {
      const holder = readMarkOf(decoded?.status, ip);
      if (holder !== undefined && holder !== key) return { kind: 'claim', key: holder };
    }
    return undefined;
  }

  /**
   * Measures how long an address still has to rest: from the look that found it in use no more. In a term that has not seen it in
   * use, from the begin of the term or the end of its last Pod, whichever was earlier: from the former while a node has it, as a
   * sandbox may outlive its Pod.
   */
  #restMs(key: string, { locations, pod, retainedForMs }: RestFacts): number {
    const { clock, necs, config } = this.#term;
    const nowMs = clock.monotonicMs();
    const isOnNode = locations.some(
      (one) =>
        mayHaveSandbox(necs.get(one.nodeName)?.decoded?.spec ?? {}, one) &&
        // What may still run on a node that does not answer is cut off.
        this.noteNode(one.nodeName) < Math.max(1, config.staticTakeoverAfterMs),
    );
    // An annotation gives a Pod on a super node its address.
    const isNow = isOnNode || pod?.allocation !== undefined;
    if (isNow || this.#uses.get(key)?.isNow === true) this.#uses.set(key, { isNow, lastMs: nowMs });
    const unseenMs = locations.length > 0 ? this.#startMs : Math.min(this.#startMs, nowMs - retainedForMs);
    const lastMs = this.#uses.get(key)?.lastMs ?? unseenMs;
    return Math.max(0, lastMs + REST_MS - nowMs);
  }

  /**
   * Measures how long an address is Releasing. Time in which the target node brings other addresses does not count, up
   * to a bound: this address is next.
   */
  #releasingForMs(key: string, target: string): number {
    const nowMs = this.#term.clock.monotonicMs();
    const { sinceMs, idleSinceMs } = this.#releasing.get(key) ?? { sinceMs: nowMs, idleSinceMs: nowMs };
    const status = this.#term.necs.get(target)?.decoded?.status;
    const isBusy = isAssigningOthers(status, key) && nowMs - sinceMs < MAX_QUEUE_MS;
    const since = { sinceMs, idleSinceMs: isBusy ? nowMs : idleSinceMs };
    this.#releasing.set(key, since);
    return nowMs - since.idleSinceMs;
  }

  #endReleasing(key: string): number {
    this.#releasing.delete(key);
    return 0;
  }
}

/** Addresses whose subnet is remembered: of sixteen of the largest pools. */
const MAX_ADDRESSES = 65_536;

/** A node whose addresses all move at once has no more than these on one ENI, a few seconds each. */
const MAX_QUEUE_MS = 300_000;

/** Reports whether calls that bring other addresses are in flight: on one ENI each waits for the one before. */
function isAssigningOthers(status: NodeEniConfigStatus | undefined, key: string): boolean {
  return (status?.intents ?? []).some(({ action, claim }) => ASSIGNING.includes(action) && claim !== key);
}

const ASSIGNING: readonly string[] = ['AssignPrivateIpAddresses', 'MigratePrivateIpAddress'];

function keysOf(status: NodeEniConfigStatus | undefined): readonly string[] {
  return (status?.eniInfos ?? []).flatMap(({ claim, addresses = [] }) => [
    ...(claim === undefined ? [] : [claimKeyOf(claim)]),
    ...addresses.flatMap((one) => (one.claim === undefined ? [] : [claimKeyOf(one.claim)])),
  ]);
}

/** Reports whether a claim ends with its Pod, and its exclusive ENI with it: until then that takes a place that the next Pod may need. */
function endsWithEni(claim: VpcIpClaim | undefined): boolean {
  return claim?.spec.mode === 'direct-eni' && claim.spec.deletePolicy === 'Immediate';
}
