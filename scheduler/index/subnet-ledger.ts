import type { Held, SubnetSupply } from '../../crd/subnet-supply.ts';
import type { Ask, NodeSupply } from './node-supply.ts';

/**
 * The addresses that a node's shortfall takes from each subnet, and how many addresses of the shortfall that covers.
 */
type Charge = { readonly costs: ReadonlyMap<string, number>; readonly placed: number };

/** A new ENI needs an address for itself and at least one for a Pod. */
const LEAST_FOR_ENI = 2;

/**
 * Tracks how many addresses subnets have left for Pods that are not bound yet: what ipamd published, minus what nodes
 * have taken since, minus what nodes still need for Pods that are bound or have a reservation. Both are computed from
 * the present state and not from events, so the order in which ipamd's numbers and the node's object arrive does not
 * matter.
 */
export class SubnetLedger {
  #supplies: ReadonlyMap<string, SubnetSupply> | undefined;
  readonly #held = new Map<string, number>();
  readonly #charged = new Map<string, number>();
  readonly #charges = new Map<string, Charge>();
  /** Zone -> the subnets for new ENIs of nodes that name none themselves. */
  readonly #common = new Map<string, readonly string[]>();
  /** Results that are equal for thousands of nodes until something changes. */
  readonly #left = new Map<string, number>();
  readonly #fullest = new Map<string, number>();
  readonly #mostOfSources = new Map<string, number>();

  /** False until ipamd has published numbers: then no subnet limits a node here. */
  get isKnown(): boolean {
    return this.#supplies !== undefined;
  }

  /** Sets what ipamd published; undefined: it publishes nothing any more. */
  tell(supplies: ReadonlyMap<string, SubnetSupply> | undefined): void {
    this.#supplies = supplies;
    this.#common.clear();
    this.#forget();
  }

  /** Replaces what a node used of each subnet before by what it uses now. */
  hold(before: readonly Held[], after: readonly Held[]): void {
    if (before.length + after.length > 0) this.#forget();
    for (const { subnetId, count } of before) this.#held.set(subnetId, (this.#held.get(subnetId) ?? 0) - count);
    for (const { subnetId, count } of after) this.#held.set(subnetId, (this.#held.get(subnetId) ?? 0) + count);
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
    const ofEnis = supply.enis.map(({ subnetId }) => subnetId).filter((id) => this.#mayServe(supply, id, undefined));
    return [...new Set(supply.moreEnis > 0 ? [...ofEnis, ...this.#choicesOf(supply)] : ofEnis)];
  }

  /** Returns how many more addresses the fullest of a node's subnets could give it. */
  mostFor(supply: NodeSupply): number {
    const known = this.#mostOfSources.get(supply.sources);
    if (known !== undefined) return known;
    const most = this.#mostOf(supply);
    this.#mostOfSources.set(supply.sources, most);
    return most;
  }

  #mostOf(supply: NodeSupply): number {
    let most = supply.moreEnis > 0 ? Math.max(0, this.#mostInChoices(supply) - 1) : 0;
    for (const { subnetId } of supply.enis) {
      const left = this.leftIn(subnetId);
      if (left > most && this.#mayServe(supply, subnetId, undefined)) most = left;
    }
    return most;
  }

  /**
   * Tells whether a node can get the requested addresses in addition to what it still needs. Of the latter only as much
   * counts as its subnets covered before.
   */
  canGive(supply: NodeSupply, ask: Ask): boolean {
    if (ask.subnetIds === undefined) {
      const most = this.mostFor(supply);
      if (most === 0) return false;
      // A node without a shortfall needs no simulation: one free address is enough.
      if (supply.owed.length === 0 && ask.count === 1 && most > 0) return true;
    }
    const { costs, placed } = this.#charges.get(supply.name) ?? NO_CHARGE;
    const leftIn = (id: string): number => {
      const cost = costs.get(id);
      return cost === undefined ? this.leftIn(id) : Math.max(0, this.#balanceOf(id) + cost);
    };
    return this.#place(supply, [ask, ...supply.owed], leftIn).placed >= ask.count + placed;
  }

  /**
   * Charges what a node still needs to its subnets; undefined: it needs nothing. Returns whether all of it is covered.
   */
  charge(name: string, supply: NodeSupply | undefined): boolean {
    this.release(name);
    if (supply === undefined || supply.owed.length === 0) return true;
    const made = this.#place(supply, supply.owed, (id) => this.leftIn(id));
    this.#charges.set(name, made);
    this.#forget();
    for (const [id, cost] of made.costs) this.#charged.set(id, (this.#charged.get(id) ?? 0) + cost);
    return made.placed >= supply.owed.reduce((sum, { count }) => sum + count, 0);
  }

  /** Returns what was charged for a node to its subnets. */
  release(name: string): void {
    if (!this.#charges.has(name)) return;
    this.#forget();
    for (const [id, cost] of this.#charges.get(name)?.costs ?? [])
      this.#charged.set(id, (this.#charged.get(id) ?? 0) - cost);
    this.#charges.delete(name);
  }

  #forget(): void {
    this.#left.clear();
    this.#fullest.clear();
    this.#mostOfSources.clear();
  }

  #mostInChoices(supply: NodeSupply): number {
    const isCommon = supply.subnetIds.length === 0;
    const known = isCommon ? this.#fullest.get(supply.zone) : undefined;
    if (known !== undefined) return known;
    const most = this.#choicesOf(supply).reduce((before, id) => Math.max(before, this.leftIn(id)), 0);
    if (isCommon) this.#fullest.set(supply.zone, most);
    return most;
  }

  #balanceOf(subnetId: string): number {
    const supply = this.#supplies?.get(subnetId);
    if (supply === undefined) return Number.POSITIVE_INFINITY;
    if (supply.blocked === true) return 0;
    const taken = Math.max(0, (this.#held.get(subnetId) ?? 0) - supply.held);
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
  #place(supply: NodeSupply, asks: readonly Ask[], leftIn: (subnetId: string) => number): Charge {
    const costs = new Map<string, number>();
    const left = (id: string): number => leftIn(id) - (costs.get(id) ?? 0);
    const take = (id: string, count: number): void => void costs.set(id, (costs.get(id) ?? 0) + count);
    const enis = supply.enis.map(({ subnetId, room }) => ({ subnetId, room }));
    let more = supply.moreEnis;
    let placed = 0;
    for (const { count, subnetIds } of asks) {
      let open = count;
      for (const eni of enis) {
        if (open === 0) break;
        if (!this.#mayServe(supply, eni.subnetId, subnetIds)) continue;
        const given = Math.min(open, eni.room, Math.max(0, left(eni.subnetId)));
        eni.room -= given;
        open -= given;
        take(eni.subnetId, given);
      }
      const choices = open > 0 && more > 0 ? this.#choicesFor(supply, subnetIds) : NO_CHOICE;
      while (open > 0 && more > 0) {
        const best = mostOf(choices, left);
        if (best === undefined || left(best) < LEAST_FOR_ENI) break;
        const given = Math.min(open, supply.ipsPerEni, left(best) - 1);
        if (given <= 0) break;
        more -= 1;
        open -= given;
        take(best, given + 1);
        enis.push({ subnetId: best, room: supply.ipsPerEni - given });
      }
      placed += count - open;
    }
    return { costs, placed };
  }

  #choicesFor(supply: NodeSupply, wanted: readonly string[] | undefined): readonly string[] {
    return wanted?.filter((id) => isIn(supply.zone, this.#supplies?.get(id))) ?? this.#choicesOf(supply);
  }

  #mayServe(supply: NodeSupply, subnetId: string, wanted: readonly string[] | undefined): boolean {
    if (wanted !== undefined) return wanted.includes(subnetId);
    return this.#supplies?.get(subnetId)?.onlyNominated !== true || supply.subnetIds.includes(subnetId);
  }
}

const NO_CHARGE: Charge = { costs: new Map(), placed: 0 };
const NO_CHOICE: readonly string[] = [];

function isIn(zone: string, supply: SubnetSupply | undefined): boolean {
  return supply === undefined || zone === '' || supply.zone === zone;
}

function mostOf(ids: readonly string[], left: (id: string) => number): string | undefined {
  let best: string | undefined;
  for (const id of ids) if (best === undefined || left(id) > left(best)) best = id;
  return best;
}
