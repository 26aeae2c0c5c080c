import type { SubnetSupply } from '../../crd/subnet-supply.ts';
import type { ClaimFacts, NecFacts, NodeFacts, VipFacts } from './facts.ts';
import { NameRun } from './name-run.ts';
import { type EniRoom, eniRoomsOf, type NodeRoom, roomOf } from './node-room.ts';
import { type Keepers, type NodeSupply, supplyOf } from './node-supply.ts';
import type { PodDemand } from './pod-demand.ts';
import { expiryOf, type Moment, type Reservation } from './reservation.ts';
import { type Names, SubnetBook } from './subnet-book.ts';
import { SubnetLedger } from './subnet-ledger.ts';

/** The index entry of one node. */
export type NodeView = {
  readonly name: string;
  readonly node: NodeFacts | undefined;
  readonly nec: NecFacts | undefined;
  /** Its capacity; undefined without a NodeENIConfig. */
  readonly room: NodeRoom | undefined;
  /** The capacity of each of its ENIs. */
  readonly eniRooms: readonly EniRoom[];
  /**
   * Free addresses on shared ENIs; minus infinity without a NodeENIConfig. A field of its own, as most Pods need only
   * this.
   */
  readonly routeFree: number;
  /** Its addresses and the subnets that more may come from; undefined when its limits are not known. */
  readonly supply: NodeSupply | undefined;
};

/** What is known of the static address of a Pod, or of the address that it requests. */
export type KeptAddress = {
  /** Absent: no address is chosen yet. */
  readonly ip?: string;
  /** Its subnet; absent: not known. */
  readonly subnetId?: string;
  /** Its zone; absent: not known. */
  readonly zone?: string;
  /** The node that the address is on. */
  readonly nodeName?: string;
};

/**
 * Index of everything that the verbs answer from, updated with each change. Its answers equal those of an index that is
 * built anew from the same objects and reservations: the order of the changes does not matter. There is one exception:
 * where a subnet has too few addresses for all, the order in which nodes came to need them decides which node is covered.
 */
export class SchedulerIndex {
  readonly #ttlMs: number;
  readonly #nodes = new Map<string, IndexedNode>();
  readonly #claims = new Map<string, ClaimFacts>();
  readonly #vips = new Map<string, VipFacts>();
  readonly #vipsByClaim = new Map<string, Set<string>>();
  /** Claim -> the nodes that have its address or its exclusive ENI. */
  readonly #holders = new Map<string, Set<string>>();
  /** Pods by uid, bound or not. */
  readonly #pods = new Map<string, PodDemand>();
  /**
   * Uids of bound Pods with a static address, by key. Usually one; two only until the deletion of the first is seen.
   */
  readonly #boundUids = new Map<string, Set<string>>();
  /** Keys are `claim/<key>` and `pod/<uid>`. */
  readonly #reservations = new Map<string, Reservation>();
  /** Key of a claim, or address -> nodes whose supply was computed from it: see `#touchAskers`. */
  readonly #askers = new Map<string, Set<string>>();
  readonly #subnets = new SubnetBook();
  readonly #ledger = new SubnetLedger();
  /** Nodes whose shortfall may differ from what is charged to their subnets. */
  readonly #stale = new Set<string>();
  /** Nodes with a shortfall, and those of them whose subnets cannot cover it. */
  readonly #owing = new Set<string>();
  readonly #short = new Set<string>();
  readonly #run = new NameRun((name: string) => this.#nodes.get(name));

  /** @param ttlMs lifetime of a reservation, milliseconds */
  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  /** Sizes of the collections, for metrics. */
  get sizes(): Readonly<Record<'nodes' | 'claims' | 'addresses' | 'pods' | 'reservations', number>> {
    return {
      nodes: this.#nodes.size,
      claims: this.#claims.size,
      addresses: this.#vips.size,
      pods: this.#pods.size,
      reservations: this.#reservations.size,
    };
  }

  /** Returns the index entry of a node; undefined when the node is unknown. */
  node(name: string): NodeView | undefined {
    return this.#nodes.get(name);
  }

  /** Returns the index entries of many nodes, in the order of their names. */
  nodesOf(names: readonly string[]): readonly (NodeView | undefined)[] {
    return this.#run.resolve(names);
  }

  /** Returns the claim of a key; undefined when there is none. */
  claim(key: string): ClaimFacts | undefined {
    return this.#claims.get(key);
  }

  /** Returns a Pod that requests something of this system, by uid. */
  pod(uid: string): PodDemand | undefined {
    return this.#pods.get(uid);
  }

  /** Returns what is known of the static address of a Pod, or of the address that it requests. */
  keptOf({ key, nominatedIp }: Pick<PodDemand, 'key' | 'nominatedIp'>): KeptAddress {
    const claim = this.#claims.get(key);
    // Sorted, so that of two addresses the same one is selected in whatever order they arrived.
    const [held] = [...(this.#vipsByClaim.get(key) ?? [])].sort();
    const ip = claim?.ips[0] ?? held ?? claim?.nominatedIp ?? nominatedIp;
    if (ip === undefined) return claim?.nodeName ? { nodeName: claim.nodeName } : {};
    const told = this.#vips.get(ip)?.subnetId ?? '';
    const subnet = told === '' ? this.#subnets.find(ip) : this.#subnets.get(told);
    const subnetId = subnet?.subnetId ?? told;
    const lastZone = this.#nodes.get(claim?.nodeName ?? '')?.nec?.zone ?? '';
    const zone = subnet?.zone ?? lastZone;
    return {
      ip,
      ...(subnetId === '' ? {} : { subnetId }),
      ...(zone === '' ? {} : { zone }),
      ...(claim?.nodeName ? { nodeName: claim.nodeName } : {}),
    };
  }

  /** Returns the nodes that have the static address, or the static exclusive ENI, of a claim; two while it moves. */
  holdersOf(key: string): ReadonlySet<string> {
    return this.#holders.get(key) ?? NOBODY;
  }

  /** Returns the zone of a subnet; undefined when no node has an ENI in it. */
  zoneOf(subnetId: string): string | undefined {
    return this.#subnets.get(subnetId)?.zone;
  }

  /** Returns the nodes that have an ENI in a subnet. */
  nodesIn(subnetId: string): Names {
    return this.#subnets.nodesIn(subnetId);
  }

  /**
   * Returns what subnets have left, after the shortfalls of all nodes; undefined until ipamd has published the subnets.
   */
  ledger(): SubnetLedger | undefined {
    if (!this.#ledger.isKnown) return undefined;
    if (this.#stale.size > 0) this.#settle();
    return this.#ledger;
  }

  /** Sets what ipamd published about subnets; undefined: nothing is published. */
  setSubnets(supplies: ReadonlyMap<string, SubnetSupply> | undefined): void {
    this.#ledger.tell(supplies);
    for (const name of this.#owing) this.#stale.add(name);
  }

  /** Sets or removes what is known of a Node. */
  setNode(name: string, facts: NodeFacts | undefined): void {
    this.#at(name).node = facts;
    this.#touch(name);
    this.#drop(name);
  }

  /** Sets or removes what is known of a NodeENIConfig, and updates what depends on its ENIs. */
  setNec(name: string, facts: NecFacts | undefined): void {
    const at = this.#at(name);
    if (this.#subnets.change(at.nec, facts)) for (const key of [...this.#askers.keys()]) this.#touchAskers(key);
    this.#ledger.hold(at.nec?.held ?? [], facts?.held ?? []);
    const before = new Set(at.nec?.enis.flatMap(({ claims }) => claims));
    const after = new Set(facts?.enis.flatMap(({ claims }) => claims));
    for (const key of before) removeFrom(this.#holders, key, name);
    for (const key of after) addTo(this.#holders, key, name);
    for (const key of before) if (!after.has(key)) this.#touchAskers(key);
    for (const key of after) if (!before.has(key)) this.#touchAskers(key);
    at.setNec(facts);
    this.#touch(name);
    this.#drop(name);
  }

  /** Sets or removes a claim, and with it the reservation that the claim carries. */
  setClaim(key: string, facts: ClaimFacts | undefined, now: Moment): void {
    if (facts === undefined) this.#claims.delete(key);
    else this.#claims.set(key, facts);
    this.#touchAskers(key);
    const { reserved } = facts ?? {};
    if (facts === undefined || reserved === undefined) {
      this.#unreserve(`claim/${key}`);
      return;
    }
    const isRoute = facts.mode === 'route-eni';
    const demand = { key, uid: '', isStatic: true, routeIps: isRoute ? 1 : 0, directEnis: isRoute ? 0 : 1, eips: 0 };
    const expiresMs = expiryOf(reserved.sinceMs, this.#ttlMs, now);
    this.#reserve(`claim/${key}`, { nodeName: reserved.nodeName, demand, expiresMs });
  }

  /** Sets or removes an address that belongs to a claim. */
  setVip(ip: string, facts: VipFacts | undefined): void {
    const before = this.#vips.get(ip);
    if (before !== undefined) removeFrom(this.#vipsByClaim, before.claimKey, ip);
    if (facts === undefined) this.#vips.delete(ip);
    else {
      this.#vips.set(ip, facts);
      addTo(this.#vipsByClaim, facts.claimKey, ip);
    }
    for (const key of [ip, before?.claimKey, facts?.claimKey]) if (key !== undefined) this.#touchAskers(key);
  }

  /** Sets a Pod by its uid. A Pod that is bound, ended or deleted loses its reservation. */
  setPod(uid: string, facts: PodDemand | undefined): void {
    const before = this.#pods.get(uid);
    if (before !== undefined && before.nodeName !== '') this.#unbind(before);
    if (facts === undefined) this.#pods.delete(uid);
    else this.#pods.set(uid, facts);
    if (facts === undefined || facts.nodeName !== '') this.#unreserve(`pod/${uid}`);
    if (facts !== undefined && facts.nodeName !== '') {
      addTo(this.#boundUids, facts.key, uid);
      this.#at(facts.nodeName).pods.set(uid, facts);
      this.#touch(facts.nodeName);
      this.#touchReserved(facts.key);
    }
  }

  /** Reserves capacity of a node for a Pod, in memory only. A second reservation replaces the first. */
  reserve(nodeName: string, demand: PodDemand, now: Moment): void {
    this.#reserve(`pod/${demand.uid}`, { nodeName, demand, expiresMs: now.monotonicMs + this.#ttlMs });
  }

  /** Removes the reservation of a Pod. */
  unreserve(uid: string): void {
    this.#unreserve(`pod/${uid}`);
  }

  /** Returns the reservation of a Pod that is in memory. */
  reservationOf(uid: string): Reservation | undefined {
    return this.#reservations.get(`pod/${uid}`);
  }

  /** Removes expired reservations. All are checked: there are only as many as Pods were bound lately. */
  expire({ monotonicMs }: Moment): void {
    for (const [id, { expiresMs }] of this.#reservations) if (expiresMs <= monotonicMs) this.#unreserve(id);
  }

  #reserve(id: string, reservation: Reservation): void {
    this.#unreserve(id);
    this.#reservations.set(id, reservation);
    this.#at(reservation.nodeName).reservations.set(id, reservation);
    this.#touch(reservation.nodeName);
  }

  #unreserve(id: string): void {
    const before = this.#reservations.get(id);
    if (before === undefined) return;
    this.#reservations.delete(id);
    this.#nodes.get(before.nodeName)?.reservations.delete(id);
    this.#touch(before.nodeName);
    this.#drop(before.nodeName);
  }

  #unbind(pod: PodDemand): void {
    removeFrom(this.#boundUids, pod.key, pod.uid);
    this.#nodes.get(pod.nodeName)?.pods.delete(pod.uid);
    this.#touch(pod.nodeName);
    this.#touchReserved(pod.key);
    this.#drop(pod.nodeName);
  }

  /**
   * Charges the shortfalls of changed nodes to their subnets. Nodes that could not be covered before come first, so
   * that no other node gets the addresses that become free.
   */
  #settle(): void {
    const names = new Set([...this.#short, ...this.#stale]);
    this.#stale.clear();
    for (const name of names) this.#ledger.release(name);
    for (const name of names) {
      const supply = this.#nodes.get(name)?.supply;
      const isCovered = this.#ledger.charge(name, supply);
      mark(this.#short, name, !isCovered);
      mark(this.#owing, name, supply !== undefined && supply.owed.length > 0);
    }
  }

  /**
   * Marks the nodes whose supply was computed from a claim, an address or its subnet as changed.
   * @param key Key of a claim, or an address
   */
  #touchAskers(key: string): void {
    for (const name of [...(this.#askers.get(key) ?? [])]) this.#touch(name);
  }

  /**
   * Marks the node of a claim's reservation as changed. The reservation counts only while no Pod of that name is bound.
   */
  #touchReserved(key: string): void {
    const reserved = this.#reservations.get(`claim/${key}`);
    if (reserved !== undefined) this.#touch(reserved.nodeName);
  }

  #touch(name: string): void {
    const node = this.#nodes.get(name);
    for (const key of node?.asked ?? []) removeFrom(this.#askers, key, name);
    node?.touch();
    this.#stale.add(name);
  }

  #at(name: string): IndexedNode {
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const isBound = (key: string): boolean => this.#boundUids.has(key);
    const keptOf = (claim: string) => {
      const { ip, subnetId } = this.keptOf({ key: claim });
      for (const key of [claim, ip]) {
        if (key === undefined) continue;
        made.asked.add(key);
        addTo(this.#askers, key, name);
      }
      const ids = subnetId === undefined ? this.#claims.get(claim)?.nominatedSubnetIds : [subnetId];
      return { isThere: this.#holders.has(claim), subnetIds: ids };
    };
    const made = new IndexedNode(name, isBound, keptOf);
    this.#nodes.set(name, made);
    this.#run.forget();
    return made;
  }

  #drop(name: string): void {
    if (this.#nodes.get(name)?.isEmpty !== true) return;
    this.#nodes.delete(name);
    this.#run.forget();
  }
}

const NOBODY: ReadonlySet<string> = new Set();

/** One node. Its capacity is computed on demand, at most once for each change. */
class IndexedNode implements NodeView {
  readonly name: string;
  node: NodeFacts | undefined;
  readonly pods = new Map<string, PodDemand>();
  readonly reservations = new Map<string, Reservation>();
  /** Claims and addresses that its supply was counted by. */
  readonly asked = new Set<string>();
  readonly #isBound: (key: string) => boolean;
  readonly #keptOf: Keepers['keptOf'];
  #supply: NodeSupply | undefined;
  #isCounted = false;
  #nec: NecFacts | undefined;
  #room: NodeRoom | undefined;
  #routeFree: number | undefined;
  #eniRooms: readonly EniRoom[] | undefined;

  constructor(name: string, isBound: (key: string) => boolean, keptOf: Keepers['keptOf']) {
    this.name = name;
    this.#isBound = isBound;
    this.#keptOf = keptOf;
  }

  get nec(): NecFacts | undefined {
    return this.#nec;
  }

  get room(): NodeRoom | undefined {
    if (this.#nec === undefined) return undefined;
    this.#room ??= roomOf(this.#nec, { pods: this.pods.values(), reservations: this.#inForce() });
    return this.#room;
  }

  get routeFree(): number {
    const room = this.#routeFree === undefined ? this.room : undefined;
    this.#routeFree ??= room === undefined ? Number.NEGATIVE_INFINITY : (room.route.most ?? 0) - room.route.taken;
    return this.#routeFree;
  }

  get eniRooms(): readonly EniRoom[] {
    if (this.#nec === undefined) return [];
    this.#eniRooms ??= eniRoomsOf(this.#nec, this.pods.values());
    return this.#eniRooms;
  }

  get supply(): NodeSupply | undefined {
    if (this.#isCounted) return this.#supply;
    const { room } = this;
    const promised = this.#inForce().map(({ demand }) => demand);
    const keepers = { pods: this.pods.values(), promised, keptOf: this.#keptOf };
    this.#supply = this.#nec && room && supplyOf(this.#nec, this.node, room, keepers);
    this.#isCounted = true;
    return this.#supply;
  }

  get isEmpty(): boolean {
    const has = this.node !== undefined || this.#nec !== undefined;
    return !has && this.pods.size === 0 && this.reservations.size === 0;
  }

  setNec(nec: NecFacts | undefined): void {
    this.#nec = nec;
    this.touch();
  }

  touch(): void {
    this.asked.clear();
    this.#room = undefined;
    this.#routeFree = undefined;
    this.#eniRooms = undefined;
    this.#isCounted = false;
  }

  #inForce(): readonly Reservation[] {
    return [...this.reservations].flatMap(([id, one]) => {
      const isOver = id.startsWith('claim/') && this.#isBound(one.demand.key);
      return isOver ? [] : [one];
    });
  }
}

function mark(names: Set<string>, name: string, isIn: boolean): void {
  if (isIn) names.add(name);
  else names.delete(name);
}

function addTo(map: Map<string, Set<string>>, key: string, value: string): void {
  const set = map.get(key);
  if (set === undefined) map.set(key, new Set([value]));
  else set.add(value);
}

function removeFrom(map: Map<string, Set<string>>, key: string, value: string): void {
  const set = map.get(key);
  set?.delete(value);
  if (set?.size === 0) map.delete(key);
}
