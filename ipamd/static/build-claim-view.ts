import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { selectStaticIpConfig } from '../../crd/select-static-ip-config.ts';
import type { StaticIpConfig } from '../../crd/static-ip-config.ts';
import { type VpcIp, vpcIpName } from '../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../crd/vpc-ip-claim.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../runtime/clock.ts';
import { StampAges } from '../../runtime/stamp-ages.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import { networkRequestOf, type PodFacts, type PodOwner } from '../cache/pod-facts.ts';
import { type ClaimFacts, type StaticObject, VIPS_BY_CLAIM, type VipFacts } from '../cache/record-facts.ts';
import type { RegisteredIps } from '../cache/registered-ips.ts';
import type { SubnetState } from '../subnets/subnet-cache.ts';
import type { AddressConflict, ClaimNode, ClaimPod, ClaimView, IpHolder } from './claim-view.ts';
import type { ClaimWaits } from './claim-waits.ts';
import { findSubnet } from './find-subnet.ts';
import {
  markKey,
  readClaimCalls,
  readClaimLocations,
  readMarkOf,
  readSubnetsWithFreeSlots,
} from './read-claim-locations.ts';
import { readClaimPod, renderFault } from './read-claim-pod.ts';
import type { ZoneNames } from './zone-names.ts';

/** Indexes of NodeENIConfigs: by the key of a claim that they name, and by a marked address. */
export const NECS_BY_CLAIM = 'claim';
/** See {@link NECS_BY_CLAIM}. */
export const NECS_BY_MARKED_IP = 'marked-ip';

/** Name of the index of StaticIPConfigs by namespace: each namespace may have thousands. */
export const CONFIGS_BY_NAMESPACE = 'namespace';

type Cache<T> = Pick<Informer<T>, 'get' | 'values' | 'byIndex' | 'keys'>;

/** Dependencies of the view builder. */
type ClaimViewBuilderDeps = {
  readonly pods: Cache<PodFacts>;
  readonly nodes: Pick<Cache<NodeEntry>, 'get'>;
  /** With {@link NECS_BY_CLAIM} and {@link NECS_BY_MARKED_IP} as indexes. */
  readonly necs: Cache<NecEntry>;
  /** With {@link VIPS_BY_CLAIM} as an index. */
  readonly vips: Cache<VipFacts>;
  readonly claims: Cache<ClaimFacts>;
  /** With {@link CONFIGS_BY_NAMESPACE} as an index. */
  readonly configs: Pick<Informer<StaticObject<StaticIpConfig>>, 'byIndex'>;
  /** Returns the workload that a Pod's claim ends with; undefined: none. */
  readonly workloadOf: (pod: PodFacts) => PodOwner | undefined;
  readonly subnets: { all(): readonly SubnetState[]; isOffered(subnetId: string, isNominated: boolean): boolean };
  /** Tells whether an exclusive ENI of the claim still exists, on a node or not. */
  readonly hasEni: (key: string) => boolean;
  readonly waits: Pick<ClaimWaits, 'of' | 'dueInMs'>;
  readonly clock: Clock;
  /** Of ipamd: a StaticIPConfig in this namespace applies to the whole cluster. */
  readonly namespace: string;
  readonly defaultExpiredMs: number;
  readonly takeOverAfterMs: number;
  /** Tells whether Pods of a super node may have static addresses. Default: none. */
  readonly isStaticNode?: (node: NodeEntry) => boolean;
  /** Names of zones for the labels of super nodes. Default: none. */
  readonly zoneNames?: Pick<ZoneNames, 'nameOf'>;
  /** Reservations of addresses in the VPC. Default: none. */
  readonly reservations?: { readonly isKept: boolean; problemOf(key: string): string | undefined };
  /** Addresses that load balancers may still have. Default: none. */
  readonly registered?: Pick<RegisteredIps, 'isHeld'>;
  /** Tells whether a Node is missing without proof that it is gone. Default: there is none. */
  readonly isReleaseHeld?: (nodeName: string) => boolean;
};

/**
 * Builds the view that the decision about a claim depends on. It remembers times of states that the caches do not
 * contain.
 */
export class ClaimViewBuilder {
  readonly #deps: ClaimViewBuilderDeps;
  readonly #retained: StampAges;
  readonly #unreachableSinceMs = new Map<string, number>();
  readonly #releasing = new Map<string, { readonly sinceMs: number; readonly idleSinceMs: number }>();

  constructor(deps: ClaimViewBuilderDeps) {
    this.#deps = deps;
    this.#retained = new StampAges(deps.clock);
  }

  /** Lists every key that has a claim or should have one. */
  keys(): ReadonlySet<string> {
    const { pods, vips, claims, necs } = this.#deps;
    const keys = new Set<string>();
    for (const [key, pod] of entriesOf(pods)) if (pod.claimInfo !== undefined) keys.add(key);
    for (const claim of claims.values()) if (!claim.isRecord) keys.add(claim.key);
    for (const vip of vips.values()) if (!vip.isRecord && vip.podKey !== '') keys.add(vip.podKey);
    for (const { decoded } of necs.values()) for (const key of keysOf(decoded?.status)) keys.add(key);
    return keys;
  }

  /**
   * Notes whether a node is ready, so that time counts from when it ceased to be. Returns the milliseconds since then.
   */
  noteNode(name: string): number {
    const nowMs = this.#deps.clock.monotonicMs();
    // A Node that lists lack may run: its addresses are not taken over before it is proved that it is gone.
    if (this.#deps.nodes.get(name)?.isReady === true || this.#deps.isReleaseHeld?.(name) === true) {
      this.#unreachableSinceMs.delete(name);
      return 0;
    }
    const since = this.#unreachableSinceMs.get(name) ?? nowMs;
    this.#unreachableSinceMs.set(name, since);
    // Not ready since just now: 0 would mean ready.
    return Math.max(1, nowMs - since);
  }

  /** Returns the milliseconds until `build` returns why the claim waits; undefined when nothing is pending. */
  waitDueInMs(key: string): number | undefined {
    return this.#deps.waits.dueInMs(key);
  }

  /** Returns the Pod of a name, if it needs a claim. */
  podOf(key: string): ClaimPod | undefined {
    const { pods, configs, namespace, workloadOf } = this.#deps;
    const pod = pods.get(key);
    if (pod?.claimInfo === undefined) return undefined;
    const { labels } = pod.claimInfo;
    const rules = [...new Set([pod.namespace, namespace])].flatMap((one) =>
      configs.byIndex(CONFIGS_BY_NAMESPACE, one).flatMap(({ decoded }) => decoded ?? []),
    );
    const config = selectStaticIpConfig(rules, { namespace: pod.namespace, labels }, namespace);
    return readClaimPod(pod, config, workloadOf(pod));
  }

  /** Returns the faults of the annotations of a Pod without a claim, and its uid; undefined when it has none. */
  unclaimedFaultsOf(key: string): { readonly uid: string; readonly faults: readonly string[] } | undefined {
    const pod = this.#deps.pods.get(key);
    if (pod?.claimInfo === undefined || this.podOf(key) !== undefined) return undefined;
    const { faults } = networkRequestOf(pod);
    return faults.length === 0 ? undefined : { uid: pod.uid, faults: faults.map(renderFault) };
  }

  /** Builds the view of this moment. */
  build(key: string, claim: VpcIpClaim | undefined, conflict: AddressConflict | undefined): ClaimView {
    const { necs, vips, subnets, clock, hasEni, reservations, registered, defaultExpiredMs, takeOverAfterMs } =
      this.#deps;
    const named = necs.byIndex(NECS_BY_CLAIM, key);
    const locations = named.flatMap(({ name, decoded }) => readClaimLocations(name, decoded?.status, key));
    const all = subnets.all();
    const pod = this.podOf(key);
    const isReleasing = locations.some((location) => location.isReleasing);
    const problem = reservations?.problemOf(key);
    const own = [...vips.byIndex(VIPS_BY_CLAIM, key), ...this.#unreferenced(claim, locations)];
    // It is written once, when a claim is retained: another one is an edit, and is written back.
    const since = this.#retained.firstOf(key, claim?.status?.retainedSince);
    const ownNames = new Set(own.map(({ name }) => name));
    return {
      key,
      claim: claim && since !== undefined ? { ...claim, status: { ...claim.status, retainedSince: since } } : claim,
      vips: own.flatMap(({ staticObject }): VpcIp | readonly VpcIp[] => staticObject?.decoded ?? []),
      pod,
      locations,
      calls: named.flatMap(({ name, decoded }) => readClaimCalls(name, decoded?.status, key)),
      nodeOf: (name) => this.#nodeOf(name),
      zoneOf: (subnetId) => all.find((one) => one.subnetId === subnetId)?.zone,
      subnetOf: (ip) => findSubnet(ip, all),
      holderOf: (ip) => (ownNames.has(vpcIpName(ip)) ? this.#markedHolderOf(ip, key) : this.#holderOf(ip, key)),
      ...(registered === undefined ? {} : { isRegistered: (ip) => registered.isHeld(ip) }),
      wait: this.#deps.waits.of(key),
      conflict,
      hasEni: hasEni(key),
      releasingForMs: isReleasing ? this.#releasingForMs(key, pod?.nodeName ?? '') : this.#endReleasing(key),
      retainedForMs: this.#retained.ageMs(key, since),
      subnets: all,
      isOffered: (subnetId, isNominated) => subnets.isOffered(subnetId, isNominated),
      reservesKept: reservations?.isKept ?? false,
      ...(problem === undefined ? {} : { reservationProblem: problem }),
      defaultExpiredMs,
      takeOverAfterMs,
      nowText: new Date(clock.nowMs()).toISOString(),
    };
  }

  #nodeOf(name: string): ClaimNode {
    const { nodes, necs, isStaticNode } = this.#deps;
    const node = nodes.get(name);
    const { spec, status } = necs.get(name)?.decoded ?? {};
    const isSuper = node?.isInstance === false;
    return {
      exists: node !== undefined,
      ...(isSuper ? ({ isSuper } as const) : {}),
      enableStaticIp: isSuper ? (isStaticNode?.(node) ?? false) : spec?.enableStaticIP === true,
      zone: isSuper ? this.#zoneOfSuper(node) : status?.zone,
      unreachableForMs: this.noteNode(name),
      subnetsWithFreeSlots: readSubnetsWithFreeSlots(status, spec?.maxIPPerENI),
    };
  }

  /** Returns the label of the zone of a Pod's super node that no subnet has: it may be the number of a zone. */
  unknownZoneOf(key: string): string | undefined {
    const { pods, nodes } = this.#deps;
    const { zoneLabel } = nodes.get(pods.get(key)?.nodeName ?? '') ?? {};
    return zoneLabel === undefined || this.#isZoneOfSubnet(zoneLabel) ? undefined : zoneLabel;
  }

  #isZoneOfSubnet(name: string): boolean {
    return this.#deps.subnets.all().some(({ zone }) => zone === name);
  }

  /** Returns the name of a super node's zone; undefined where its label names none that is known. */
  #zoneOfSuper({ zoneLabel }: NodeEntry): string | undefined {
    if (zoneLabel === undefined) return undefined;
    return this.#isZoneOfSubnet(zoneLabel) ? zoneLabel : this.#deps.zoneNames?.nameOf(zoneLabel);
  }

  /** Lists VpcIPs that name no claim, because they were edited, of addresses that the claim or its mark on an ENI names. */
  #unreferenced(claim: VpcIpClaim | undefined, locations: ClaimView['locations']): readonly VipFacts[] {
    const ofMarks = locations.flatMap(({ ip }) => (ip === undefined ? [] : [vpcIpName(ip)]));
    const names = new Set([...ofMarks, ...(claim?.status?.vpcIPs ?? [])]);
    const found = [...names].flatMap((name) => this.#deps.vips.get(name) ?? []);
    return found.filter(({ isRecord, podKey }) => !isRecord && podKey === '');
  }

  #holderOf(ip: string, key: string): IpHolder | undefined {
    const { vips, pods } = this.#deps;
    const vip = vips.get(vpcIpName(ip));
    if (vip !== undefined && !vip.isRecord && vip.podKey !== key) return { kind: 'claim', key: vip.podKey };
    if (vip?.isRecord === true && pods.get(vip.podKey)?.uid === vip.podUid) return { kind: 'pod', key: vip.podKey };
    return this.#markedHolderOf(ip, key);
  }

  /** Returns the other claim that an ENI has the address for. */
  #markedHolderOf(ip: string, key: string): IpHolder | undefined {
    const { necs } = this.#deps;
    for (const { decoded } of necs.byIndex(NECS_BY_MARKED_IP, ip)) {
      const holder = readMarkOf(decoded?.status, ip);
      if (holder !== undefined && holder !== key) return { kind: 'claim', key: holder };
    }
    return undefined;
  }

  /**
   * Measures how long an address is Releasing. Time in which the target node brings other addresses does not count, up
   * to a bound: this address is next.
   */
  #releasingForMs(key: string, target: string): number {
    const nowMs = this.#deps.clock.monotonicMs();
    const { sinceMs, idleSinceMs } = this.#releasing.get(key) ?? { sinceMs: nowMs, idleSinceMs: nowMs };
    const status = this.#deps.necs.get(target)?.decoded?.status;
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

/** A node whose addresses all move at once has no more than these on one ENI, a few seconds each. */
const MAX_QUEUE_MS = 300_000;

/** Tells whether calls that bring other addresses are in flight: on one ENI each waits for the one before. */
function isAssigningOthers(status: NodeEniConfigStatus | undefined, key: string): boolean {
  return (status?.intents ?? []).some(({ action, claim }) => ASSIGNING.includes(action) && claim !== key);
}

const ASSIGNING: readonly string[] = ['AssignPrivateIpAddresses', 'MigratePrivateIpAddress'];

function* entriesOf<T>(cache: Pick<Cache<T>, 'keys' | 'get'>): Iterable<readonly [string, T]> {
  for (const key of cache.keys()) {
    const value = cache.get(key);
    if (value !== undefined) yield [key, value];
  }
}

function keysOf(status: NodeEniConfigStatus | undefined): readonly string[] {
  return (status?.eniInfos ?? []).flatMap(({ claim, addresses = [] }) => [
    ...(claim === undefined ? [] : [markKey(claim)]),
    ...addresses.flatMap((one) => (one.claim === undefined ? [] : [markKey(one.claim)])),
  ]);
}
