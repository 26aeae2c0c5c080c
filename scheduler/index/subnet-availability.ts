import type { SubnetSupply, SubnetUsage } from '../../crd/subnet-supply.ts';
import type { AddressRequest, NodeSupply } from './node-supply.ts';

/**
 * The addresses that a node's shortfall takes from each subnet, and how many addresses of the shortfall that covers.
 */
type Charge = { readonly costs: ReadonlyMap<string, number>; readonly covered: number };

/** A new ENI needs an address for itself and at least one for a Pod. */
const MIN_FOR_NEW_ENI = 2;

/**
 * Tracks how many addresses subnets have left for Pods that are not bound yet: what ipamd published, minus what nodes
 * have taken since, minus what nodes still need for Pods that are bound or have a reservation. Both are computed from
 * the present state and not from events, so the order in which ipamd's numbers and the node's object arrive does not
 * matter.
 */
export class SubnetAvailability {
  #supplies: ReadonlyMap<string, SubnetSupply> | undefined;
  readonly #used = new Map<string, number>();
  readonly #charged = new Map<string, number>();
  readonly #charges = new Map<string, Charge>();
  /** Zone -> the subnets for new ENIs of nodes that name none themselves. */
  readonly #common = new Map<string, readonly string[]>();
  /** Results that are equal for thousands of nodes until something changes. */
  readonly #left = new Map<string, number>();
  readonly #fullest = new Map<string, number>();
  readonly #maxBySources = new Map<string, number>();
  /** The same by number. */
  readonly #maxByNumber: (number | undefined)[] = [];

  /** False until ipamd has published numbers: then no subnet limits a node here. */
  get isKnown(): boolean {
    return this.#supplies !== undefined;
  }

  /** Sets what ipamd published; undefined: it publishes nothing any more. */
  setSupplies(supplies: ReadonlyMap<string, SubnetSupply> | undefined): void {
    this.#supplies = supplies;
    this.#common.clear();
    this.#clearCaches();
  }

  /** Replaces what a node used of each subnet before by what it uses now. */
  updateUsage(before: readonly SubnetUsage[], after: readonly SubnetUsage[]): void {
    if (before.length + after.length > 0) this.#clearCaches();
    for (const { subnetId, count } of before) this.#used.set(subnetId, (this.#used.get(subnetId) ?? 0) - count);
    for (const { subnetId, count } of after) this.#used.set(subnetId, (this.#used.get(subnetId) ?? 0) + count);
  }

  /** Returns what ipamd published about a subnet. */
  supplyOf(subnetId: string): SubnetSupply | undefined {
    return this.#supplies?.get(subnetId);
  }

  /** Returns how many addresses a subnet has left; infinite when nothing is published about it. */
  leftIn(subnetId: string): number {
    const known = this.#left.get(subnetId);
    if (known !== undefined) return known;
    const left = Math.max(0, this.#balanceOf(subnetId));
    this.#left.set(subnetId, left);
    return left;
  }

  /**
   * Lists the subnets that addresses of a node may come from: first those of its ENIs with free capacity, then those
   * for new ENIs.
   */
  sourcesOf(supply: NodeSupply): readonly string[] {
    const ofEnis = supply.enis.map(({ subnetId }) => subnetId).filter((id) => this.#isUsable(supply, id, undefined));
    return [...new Set(supply.moreEnis > 0 ? [...ofEnis, ...this.#choicesOf(supply)] : ofEnis)];
  }

  /** Returns how many more addresses the fullest of a node's subnets could give it. */
  maxAvailableFor(supply: NodeSupply): number {
    const known = this.#maxBySources.get(supply.sources);
    if (known !== undefined) return known;
    const max = this.#computeMax(supply);
    this.#maxBySources.set(supply.sources, max);
    return max;
  }

  /**
   * Returns the same for the node with this supply. With the number of its sources the supply is mostly not looked at: for
   * thousands of nodes that saves half of the time.
   */
  maxAvailableAt(sourcesNumber: number, node: { readonly supply: NodeSupply | undefined }): number {
    const known = this.#maxByNumber[sourcesNumber];
    if (known !== undefined) return known;
    const max = node.supply === undefined ? 0 : this.maxAvailableFor(node.supply);
    this.#maxByNumber[sourcesNumber] = max;
    return max;
  }

  #computeMax(supply: NodeSupply): number {
    let max = supply.moreEnis > 0 ? Math.max(0, this.#maxInChoices(supply) - 1) : 0;
    for (const { subnetId } of supply.enis) {
      const left = this.leftIn(subnetId);
      if (left > max && this.#isUsable(supply, subnetId, undefined)) max = left;
    }
    return max;
  }

  /**
   * Reports whether a node can get the requested addresses in addition to what it still needs. Of the latter only as much
   * counts as its subnets covered before.
   */
  canProvide(supply: NodeSupply, request: AddressRequest): boolean {
    if (request.subnetIds === undefined) {
      const max = this.maxAvailableFor(supply);
      if (max === 0) return false;
      // A node without a shortfall needs no simulation: one free address is enough.
      if (supply.unmet.length === 0 && request.count === 1 && max > 0) return true;
    }
    const { costs, covered } = this.#charges.get(supply.name) ?? NO_CHARGE;
    const leftIn = (id: string): number => {
      const cost = costs.get(id);
      return cost === undefined ? this.leftIn(id) : Math.max(0, this.#balanceOf(id) + cost);
    };
    return this.#simulate(supply, [request, ...supply.unmet], leftIn).covered >= request.count + covered;
  }

  /**
   * Charges what a node still needs to its subnets; undefined: it needs nothing. Returns whether all of it is covered.
   */
  charge(name: string, supply: NodeSupply | undefined): boolean {
    this.release(name);
    if (supply === undefined || supply.unmet.length === 0) return true;
    const made = this.#simulate(supply, supply.unmet, (id) => this.leftIn(id));
    this.#charges.set(name, made);
    this.#clearCaches();
    for (const [id, cost] of made.costs) this.#charged.set(id, (this.#charged.get(id) ?? 0) + cost);
    return made.covered >= supply.unmet.reduce((sum, { count }) => sum + count, 0);
  }

  /** Returns what was charged for a node to its subnets. */
  release(name: string): void {
    if (!this.#charges.has(name)) return;
    this.#clearCaches();
    for (const [id, cost] of this.#charges.get(name)?.costs ?? [])
      this.#charged.set(id, (this.#charged.get(id) ?? 0) - cost);
    this.#charges.delete(name);
  }

  #clearCaches(): void {
    this.#left.clear();
    this.#fullest.clear();
    this.#maxBySources.clear();
    this.#maxByNumber.fill(undefined);
  }

  #maxInChoices(supply: NodeSupply): number {
    const isCommon = supply.subnetIds.length === 0;
    const known = isCommon ? this.#fullest.get(supply.zone) : undefined;
    if (known !== undefined) return known;
    const max = this.#choicesOf(supply).reduce((before, id) => Math.max(before, this.leftIn(id)), 0);
    if (isCommon) this.#fullest.set(supply.zone, max);
    return max;
  }

  #balanceOf(subnetId: string): number {
    const supply = this.#supplies?.get(subnetId);
    if (supply === undefined) return Number.POSITIVE_INFINITY;
    if (supply.blocked === true) return 0;
    const taken = Math.max(0, (this.#used.get(subnetId) ?? 0) - supply.held);
    return supply.free - taken - (this.#charged.get(subnetId) ?? 0);
  }

  /** Returns the subnets for new ENIs: those named for the node, else those of the cluster; only those in its zone. */
  #choicesOf({ zone, subnetIds }: NodeSupply): readonly string[] {
    if (subnetIds.length > 0) return subnetIds.filter((id) => isIn(zone, this.#supplies?.get(id)));
    const known = this.#common.get(zone);
    if (known !== undefined) return known;
    const all = [...(this.#supplies ?? [])].filter(([, one]) => one.common === true && one.onlyNominated !== true);
    const made = all.filter(([, one]) => isIn(zone, one)).map(([id]) => id);
    this.#common.set(zone, made);
    return made;
  }

  /**
   * Simulates the assignment of addresses as ipamd does it: existing ENIs first, then new ENIs, each in the subnet with
   * the most addresses left.
   */
  #simulate(supply: NodeSupply, requests: readonly AddressRequest[], leftIn: (subnetId: string) => number): Charge {
    const costs = new Map<string, number>();
    const left = (id: string): number => leftIn(id) - (costs.get(id) ?? 0);
    const take = (id: string, count: number): void => {
      costs.set(id, (costs.get(id) ?? 0) + count);
    };
    const enis = supply.enis.map(({ subnetId, free }) => ({ subnetId, free }));
    let more = supply.moreEnis;
    let covered = 0;
    for (const { count, subnetIds } of requests) {
      let open = count;
      for (const eni of enis) {
        if (open === 0) break;
        if (!this.#isUsable(supply, eni.subnetId, subnetIds)) continue;
        const assigned = Math.min(open, eni.free, Math.max(0, left(eni.subnetId)));
        eni.free -= assigned;
        open -= assigned;
        take(eni.subnetId, assigned);
      }
      const choices = open > 0 && more > 0 ? this.#choicesFor(supply, subnetIds) : NO_CHOICE;
      while (open > 0 && more > 0) {
        const best = fullestOf(choices, left);
        if (best === undefined || left(best) < MIN_FOR_NEW_ENI) break;
        const assigned = Math.min(open, supply.ipsPerEni, left(best) - 1);
        if (assigned <= 0) break;
        more -= 1;
        open -= assigned;
        take(best, assigned + 1);
        enis.push({ subnetId: best, free: supply.ipsPerEni - assigned });
      }
      covered += count - open;
    }
    return { costs, covered };
  }

  #choicesFor(supply: NodeSupply, accepted: readonly string[] | undefined): readonly string[] {
    return accepted?.filter((id) => isIn(supply.zone, this.#supplies?.get(id))) ?? this.#choicesOf(supply);
  }

  #isUsable(supply: NodeSupply, subnetId: string, accepted: readonly string[] | undefined): boolean {
    if (accepted !== undefined) return accepted.includes(subnetId);
    return this.#supplies?.get(subnetId)?.onlyNominated !== true || supply.subnetIds.includes(subnetId);
  }
}

const NO_CHARGE: Charge = { costs: new Map(), covered: 0 };
const NO_CHOICE: readonly string[] = [];

function isIn(zone: string, supply: SubnetSupply | undefined): boolean {
  return supply === undefined || zone === '' || supply.zone === zone;
}

function fullestOf(ids: readonly string[], left: (id: string) => number): string | undefined {
  let best: string | undefined;
  for (const id of ids) if (best === undefined || left(id) > left(best)) best = id;
  return best;
}
