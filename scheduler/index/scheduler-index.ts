import type { SubnetSupply } from '../../crd/subnet-supply.ts';
import type { ClaimFacts, NecFacts, NodeTraits, VipFacts } from './facts.ts';
import { NamesByKey } from './names-by-key.ts';
import { type EniCapacity, eniCapacitiesOf, type NodeCapacity, nodeCapacityOf } from './node-capacity.ts';
import { type NodeSupply, type SupplyInput, supplyOf } from './node-supply.ts';
import { OrderedLookup } from './ordered-lookup.ts';
import type { PodRequest } from './pod-request.ts';
import { expiryOf, type Moment, type Reservation, type ReservationAge } from './reservation.ts';
import { SubnetAvailability } from './subnet-availability.ts';
import { type NameLookup, SubnetIndex } from './subnet-index.ts';

/** The index entry of one node. */
export type NodeEntry = {
  readonly name: string;
  readonly node: NodeTraits | undefined;
  readonly nec: NecFacts | undefined;
  /** Its capacity; undefined without a NodeENIConfig. */
  readonly capacity: NodeCapacity | undefined;
  /** The capacity of each of its ENIs. */
  readonly eniCapacities: readonly EniCapacity[];
  /**
   * Free addresses on shared ENIs; NONE_FREE without a NodeENIConfig. A field of its own, as most Pods need only this and
   * the next.
   */
  readonly routeFree: number;
  /** `supply.spare`; UNLIMITED where the supply is not known. */
  readonly spare: number;
  /** A small number that stands for `supply.sources`: equal for nodes whose addresses come from the same subnets. */
  readonly sourcesNumber: number;
  /** True while cloud calls for the node are pending: the answer may change within moments. */
  readonly hasPendingCalls: boolean;
  /** Its zone where it takes static addresses of that zone only; '' for a super node, and where no zone is known. */
  readonly staticZone: string;
  /**
   * The zone of which it has capacity for one static address, of any subnet; '' for one of any zone, undefined for none. A
   * field of its own, as most Pods with a static address need only this.
   */
  readonly staticCapacity: string | undefined;
  /** Its addresses and the subnets that more may come from; undefined when its limits are not known. */
  readonly supply: NodeSupply | undefined;
};

/** Stands for no address, and fits a small integer: a fraction or an infinity would be an object of its own for each node. */
const NONE_FREE = -(2 ** 30);
/** Stands for more addresses than any Pod needs; likewise. */
const UNLIMITED = 2 ** 30;

/** What is known of the static address of a Pod, or of the address that it requests. */
export type StaticAddress = {
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
 * built again from the same objects and reservations: the order of the changes does not matter. There is one exception:
 * where a subnet has too few addresses for all, the order in which nodes came to need them decides which node is covered.
 */
export class SchedulerIndex {
  readonly #ttlMs: number;
  readonly #nodes = new Map<string, IndexedNode>();
  readonly #claims = new Map<string, ClaimFacts>();
  readonly #vips = new Map<string, VipFacts>();
  readonly #vipsByClaim = new NamesByKey();
  /** Claim -> the nodes that have its address or its exclusive ENI. */
  readonly #holders = new NamesByKey();
  /** Pods by uid, bound or not. */
  readonly #pods = new Map<string, PodRequest>();
  /**
   * Uids of bound Pods with a static address, by key. Usually one; two only until the deletion of the first is seen.
   */
  readonly #boundUids = new NamesByKey();
  /** Keys are `claim/<key>` and `pod/<uid>`. */
  readonly #reservations = new Map<string, Reservation>();
  /** Key of a claim, or address -> nodes whose supply was computed from it: see `#invalidateDependents`. */
  readonly #dependents = new NamesByKey();
  /** Numbers of `NodeSupply.sources`: a few for each zone and each set of subnets. */
  readonly #numbers = new Map<string, number>();
  readonly #subnets = new SubnetIndex();
  readonly #availability = new SubnetAvailability();
  /** Nodes whose shortfall may differ from what is charged to their subnets. */
  readonly #stale = new Set<string>();
  /** Nodes with a shortfall, and those of them whose subnets cannot cover it. */
  readonly #withShortfall = new Set<string>();
  readonly #uncovered = new Set<string>();
  readonly #lookup = new OrderedLookup((name: string) => this.#nodes.get(name));
  /** One for all nodes: of thousands each closure counts. */
  readonly #lookups: Lookups = {
    isBound: (key) => this.#boundUids.has(key),
    staticSourceOf: (node, claim) => this.#staticSourceOf(node, claim),
    numberOf: (text) => this.#numberOf(text),
  };

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
  node(name: string): NodeEntry | undefined {
    return this.#nodes.get(name);
  }

  /**
   * Returns the index entries of many nodes, in the order of their names. For the same array of names it is the same array, as
   * long as no node comes, goes or gets another `staticZone`.
   */
  nodesOf(names: readonly string[]): readonly (NodeEntry | undefined)[] {
    return this.#lookup.resolve(names);
  }

  /** Returns the claim of a key; undefined when there is none. */
  claim(key: string): ClaimFacts | undefined {
    return this.#claims.get(key);
  }

  /** Returns a Pod that requests something of this system, by uid. */
  pod(uid: string): PodRequest | undefined {
    return this.#pods.get(uid);
  }

  /** Returns the Pods on a node that request something of this system. */
  podsOn(name: string): readonly PodRequest[] {
    return [...(this.#nodes.get(name)?.pods ?? [])];
  }

  /** Returns what is known of the static address of a Pod, or of the address that it requests. */
  staticAddressOf({ key, nominatedIp }: Pick<PodRequest, 'key' | 'nominatedIp'>): StaticAddress {
    const claim = this.#claims.get(key);
    // Sorted, so that of two addresses the same one is selected in whatever order they arrived.
    const [held] = this.#vipsByClaim.get(key).toSorted();
    const ip = claim?.ips[0] ?? held ?? claim?.nominatedIp ?? nominatedIp;
    if (ip === undefined) return claim?.nodeName ? { nodeName: claim.nodeName } : {};
    const publishedId = this.#vips.get(ip)?.subnetId ?? '';
    const subnet = publishedId === '' ? this.#subnets.find(ip) : this.#subnets.get(publishedId);
    const subnetId = subnet?.subnetId ?? publishedId;
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
    return this.#holders.has(key) ? new Set(this.#holders.get(key)) : NO_NODES;
  }

  /** Returns the zone of a subnet; undefined when no node has an ENI in it. */
  zoneOf(subnetId: string): string | undefined {
    return this.#subnets.get(subnetId)?.zone;
  }

  /** Returns the nodes that have an ENI in a subnet. */
  nodesIn(subnetId: string): NameLookup {
    return this.#subnets.nodesIn(subnetId);
  }

  /**
   * Returns what subnets have left, after the shortfalls of all nodes; undefined until ipamd has published the subnets.
   */
  availability(): SubnetAvailability | undefined {
    if (!this.#availability.isKnown) return undefined;
    if (this.#stale.size > 0) this.#chargeShortfalls();
    return this.#availability;
  }

  /** Sets what ipamd published about subnets; undefined: nothing is published. */
  setSubnets(supplies: ReadonlyMap<string, SubnetSupply> | undefined): void {
    this.#availability.setSupplies(supplies);
    for (const name of this.#withShortfall) this.#stale.add(name);
  }

  /** Sets or removes what is known of a Node. */
  setNode(name: string, facts: NodeTraits | undefined): void {
    const node = this.#ensureNode(name);
    this.#change(node, () => {
      node.node = facts;
    });
    this.#invalidate(name);
    this.#dropIfEmpty(name);
  }

  /** Sets or removes what is known of a NodeENIConfig, and updates what depends on its ENIs. */
  setNec(name: string, facts: NecFacts | undefined): void {
    const node = this.#ensureNode(name);
    if (this.#subnets.update(node.nec, facts))
      for (const key of [...this.#dependents.keys()]) this.#invalidateDependents(key);
    this.#availability.updateUsage(node.nec?.subnetUsage ?? [], facts?.subnetUsage ?? []);
    const before = new Set(node.nec?.enis.flatMap(({ claims }) => claims));
    const after = new Set(facts?.enis.flatMap(({ claims }) => claims));
    for (const key of before) this.#holders.remove(key, name);
    for (const key of after) this.#holders.add(key, name);
    for (const key of before) if (!after.has(key)) this.#invalidateDependents(key);
    for (const key of after) if (!before.has(key)) this.#invalidateDependents(key);
    this.#change(node, () => node.setNec(facts));
    this.#invalidate(name);
    this.#dropIfEmpty(name);
  }

  /**
   * Sets or removes a claim, and with it the reservation that the claim carries.
   * @param age How old that reservation is now; without one it does not count.
   */
  setClaim(key: string, facts: ClaimFacts | undefined, age: ReservationAge): void {
    if (facts === undefined) this.#claims.delete(key);
    else this.#claims.set(key, facts);
    this.#invalidateDependents(key);
    const { reserved } = facts ?? {};
    if (facts === undefined || reserved === undefined) {
      this.#unreserve(`claim/${key}`);
      return;
    }
    const isRoute = facts.mode === 'route-eni';
    const demand = { key, uid: '', isStatic: true, routeIps: isRoute ? 1 : 0, exclusiveEnis: isRoute ? 0 : 1, eips: 0 };
    const expiresMs = expiryOf(age, this.#ttlMs);
    this.#reserve(`claim/${key}`, { nodeName: reserved.nodeName, demand, expiresMs });
  }

  /** Sets or removes an address that belongs to a claim. */
  setVip(ip: string, facts: VipFacts | undefined): void {
    const before = this.#vips.get(ip);
    if (before !== undefined) this.#vipsByClaim.remove(before.claimKey, ip);
    if (facts === undefined) this.#vips.delete(ip);
    else {
      this.#vips.set(ip, facts);
      this.#vipsByClaim.add(facts.claimKey, ip);
    }
    for (const key of [ip, before?.claimKey, facts?.claimKey]) if (key !== undefined) this.#invalidateDependents(key);
  }

  /** Sets a Pod by its uid. A Pod that is bound, ended or deleted loses its reservation. */
  setPod(uid: string, facts: PodRequest | undefined): void {
    const before = this.#pods.get(uid);
    if (before !== undefined && before.nodeName !== '') this.#unbind(before);
    if (facts === undefined) this.#pods.delete(uid);
    else this.#pods.set(uid, facts);
    if (facts === undefined || facts.nodeName !== '') this.#unreserve(`pod/${uid}`);
    if (facts !== undefined && facts.nodeName !== '') {
      if (facts.isStatic) this.#boundUids.add(facts.key, uid);
      this.#ensureNode(facts.nodeName).addPod(facts);
      this.#invalidate(facts.nodeName);
      this.#invalidateReserved(facts.key);
    }
  }

  /** Reserves capacity of a node for a Pod, in memory only. A second reservation replaces the first. */
  reserve(nodeName: string, demand: PodRequest, now: Moment): void {
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
    this.#ensureNode(reservation.nodeName).reserve(id, reservation);
    this.#invalidate(reservation.nodeName);
  }

  #unreserve(id: string): void {
    const before = this.#reservations.get(id);
    if (before === undefined) return;
    this.#reservations.delete(id);
    this.#nodes.get(before.nodeName)?.unreserve(id);
    this.#invalidate(before.nodeName);
    this.#dropIfEmpty(before.nodeName);
  }

  #unbind(pod: PodRequest): void {
    this.#boundUids.remove(pod.key, pod.uid);
    this.#nodes.get(pod.nodeName)?.removePod(pod);
    this.#invalidate(pod.nodeName);
    this.#invalidateReserved(pod.key);
    this.#dropIfEmpty(pod.nodeName);
  }

  /**
   * Charges the shortfalls of changed nodes to their subnets. Nodes that could not be covered before come first, so
   * that no other node gets the addresses that become free.
   */
  #chargeShortfalls(): void {
    const names = new Set([...this.#uncovered, ...this.#stale]);
    this.#stale.clear();
    for (const name of names) this.#availability.release(name);
    for (const name of names) {
      const supply = this.#nodes.get(name)?.supply;
      const isCovered = this.#availability.charge(name, supply);
      mark(this.#uncovered, name, !isCovered);
      mark(this.#withShortfall, name, supply !== undefined && supply.unmet.length > 0);
    }
  }

  /**
   * Marks the nodes whose supply was computed from a claim, an address or its subnet as changed.
   * @param key Key of a claim, or an address
   */
  #invalidateDependents(key: string): void {
    for (const name of this.#dependents.get(key)) this.#invalidate(name);
  }

  /**
   * Marks the node of a claim's reservation as changed. The reservation counts only while no Pod of that name is bound.
   */
  #invalidateReserved(key: string): void {
    const reserved = this.#reservations.get(`claim/${key}`);
    if (reserved !== undefined) this.#invalidate(reserved.nodeName);
  }

  #invalidate(name: string): void {
    const node = this.#nodes.get(name);
    for (const key of node?.supplyKeys ?? []) this.#dependents.remove(key, name);
    node?.invalidate();
    this.#stale.add(name);
  }

  /** Changes a node; what was made of lists with it holds for one `staticZone` only. */
  #change(node: IndexedNode, change: () => void): void {
    const { staticZone } = node;
    change();
    if (node.staticZone !== staticZone) this.#lookup.reset();
  }

  #ensureNode(name: string): IndexedNode {
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const made = new IndexedNode(name, this.#lookups);
    this.#nodes.set(name, made);
    this.#lookup.reset();
    return made;
  }

  /** Looks up where a static address of a Pod on a node may come from, and notes that the node depends on it. */
  #staticSourceOf(node: IndexedNode, claim: string): ReturnType<SupplyInput['staticSourceOf']> {
    const { ip, subnetId } = this.staticAddressOf({ key: claim });
    for (const key of [claim, ip]) {
      if (key === undefined) continue;
      node.addSupplyKey(key);
      this.#dependents.add(key, node.name);
    }
    const ids = subnetId === undefined ? this.#claims.get(claim)?.nominatedSubnetIds : [subnetId];
    return { exists: this.#holders.has(claim), subnetIds: ids };
  }

  #numberOf(text: string): number {
    const number = this.#numbers.get(text) ?? this.#numbers.size;
    this.#numbers.set(text, number);
    return number;
  }

  #dropIfEmpty(name: string): void {
    if (this.#nodes.get(name)?.isEmpty !== true) return;
    this.#nodes.delete(name);
    this.#lookup.reset();
  }
}

const NO_NODES: ReadonlySet<string> = new Set();

const NO_RESERVATIONS: ReadonlyMap<string, Reservation> = new Map();

/** What a node looks up in the index. */
type Lookups = {
  /** Reports whether a Pod of a key is bound. */
  readonly isBound: (key: string) => boolean;
  readonly staticSourceOf: (node: IndexedNode, claim: string) => ReturnType<SupplyInput['staticSourceOf']>;
  readonly numberOf: (sources: string) => number;
};

/**
 * One node. Its capacity is computed on demand, at most once for each change. What most nodes do not have is not made: an
 * empty Map takes 200 bytes.
 */
class IndexedNode implements NodeEntry {
  readonly name: string;
  node: NodeTraits | undefined;
  readonly #pods: PodRequest[] = [];
  #reservations: Map<string, Reservation> | undefined;
  #supplyKeys: Set<string> | undefined;
  readonly #lookups: Lookups;
  #supply: NodeSupply | undefined;
  #isCounted = false;
  #spare: number | undefined;
  #sourcesNumber: number | undefined;
  #hasPendingCalls = false;
  #nec: NecFacts | undefined;
  #capacity: NodeCapacity | undefined;
  #routeFree: number | undefined;
  /** Null: not yet found out. */
  #staticCapacity: string | undefined | null = null;
  #eniCapacities: readonly EniCapacity[] | undefined;

  constructor(name: string, lookups: Lookups) {
    this.name = name;
    this.#lookups = lookups;
  }

  /** The Pods on the node, in the order in which they were added. */
  get pods(): readonly PodRequest[] {
    return this.#pods;
  }

  get reservations(): ReadonlyMap<string, Reservation> {
    return this.#reservations ?? NO_RESERVATIONS;
  }

  /** Claims and addresses that its supply was counted by. */
  get supplyKeys(): ReadonlySet<string> {
    return this.#supplyKeys ?? NO_NODES;
  }

  addPod(pod: PodRequest): void {
    this.#pods.push(pod);
  }

  /** Removes a Pod by its uid. A node has a few hundred at most. */
  removePod({ uid }: PodRequest): void {
    const at = this.#pods.findIndex((one) => one.uid === uid);
    if (at >= 0) this.#pods.splice(at, 1);
  }

  reserve(id: string, reservation: Reservation): void {
    this.#reservations ??= new Map();
    this.#reservations.set(id, reservation);
  }

  unreserve(id: string): void {
    this.#reservations?.delete(id);
    if (this.#reservations?.size === 0) this.#reservations = undefined;
  }

  addSupplyKey(key: string): void {
    this.#supplyKeys ??= new Set();
    this.#supplyKeys.add(key);
  }

  get nec(): NecFacts | undefined {
    return this.#nec;
  }

  get capacity(): NodeCapacity | undefined {
    if (this.#nec === undefined) return undefined;
    this.#capacity ??= nodeCapacityOf(this.#nec, {
      pods: this.#pods,
      reservations: this.#activeReservations(),
    });
    return this.#capacity;
  }

  get routeFree(): number {
    const capacity = this.#routeFree === undefined ? this.capacity : undefined;
    this.#routeFree ??= capacity === undefined ? NONE_FREE : (capacity.route.limit ?? 0) - capacity.route.used;
    return this.#routeFree;
  }

  get spare(): number {
    this.#spare ??= this.supply?.spare ?? UNLIMITED;
    return this.#spare;
  }

  get sourcesNumber(): number {
    this.#sourcesNumber ??= this.#lookups.numberOf(this.supply?.sources ?? '');
    return this.#sourcesNumber;
  }

  get hasPendingCalls(): boolean {
    return this.#hasPendingCalls;
  }

  get staticZone(): string {
    return this.#nec?.isStatic === true && this.node?.isSuper !== true ? this.#nec.zone : '';
  }

  get staticCapacity(): string | undefined {
    if (this.#staticCapacity === null) this.#staticCapacity = this.#findStaticCapacity();
    return this.#staticCapacity;
  }

  get eniCapacities(): readonly EniCapacity[] {
    if (this.#nec === undefined) return [];
    this.#eniCapacities ??= eniCapacitiesOf(this.#nec, this.#pods);
    return this.#eniCapacities;
  }

  get supply(): NodeSupply | undefined {
    if (this.#isCounted) return this.#supply;
    const { capacity } = this;
    const reserved = this.#activeReservations().map(({ demand }) => demand);
    const staticSourceOf = (claim: string) => this.#lookups.staticSourceOf(this, claim);
    const input = { pods: this.#pods, reserved, staticSourceOf };
    this.#supply = this.#nec && capacity && supplyOf(this.#nec, this.node, capacity, input);
    this.#isCounted = true;
    return this.#supply;
  }

  get isEmpty(): boolean {
    const has = this.node !== undefined || this.#nec !== undefined;
    return !has && this.#pods.length === 0 && this.reservations.size === 0;
  }

  setNec(nec: NecFacts | undefined): void {
    this.#nec = nec;
    this.#hasPendingCalls = nec?.isBinding === true || nec?.enis.some(isPendingEni) === true;
    this.invalidate();
  }

  invalidate(): void {
    this.#supplyKeys = undefined;
    this.#capacity = undefined;
    this.#routeFree = undefined;
    this.#staticCapacity = null;
    this.#eniCapacities = undefined;
    this.#isCounted = false;
    this.#spare = undefined;
    this.#sourcesNumber = undefined;
  }

  #findStaticCapacity(): string | undefined {
    const nec = this.#nec;
    if (nec?.isStatic !== true || nec.subnetIds.length > 0 || this.routeFree < 1) return undefined;
    return this.capacity !== undefined && this.capacity.moreEnis > 0 ? nec.zone : undefined;
  }

  #activeReservations(): readonly Reservation[] {
    return [...this.reservations].flatMap(([id, one]) => {
      const isOver = id.startsWith('claim/') && this.#lookups.isBound(one.demand.key);
      return isOver ? [] : [one];
    });
  }
}

function isPendingEni({ isShared, isChanging }: NecFacts['enis'][number]): boolean {
  return isShared && isChanging;
}

function mark(names: Set<string>, name: string, isIn: boolean): void {
  if (isIn) names.add(name);
  else names.delete(name);
}
