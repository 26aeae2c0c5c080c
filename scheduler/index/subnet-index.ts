import { isInCidr, parseCidr } from '../../crd/ip-text.ts';
import type { NecFacts } from './facts.ts';

/** Zone and network of a subnet, as the ENIs of nodes report them; `cidr` is '' when no node reports a network. */
type SubnetFacts = { readonly subnetId: string; readonly zone: string; readonly cidr: string };

/** A set of names, for membership tests only. */
export type NameLookup = { has(name: string): boolean };

/** One report about a subnet, and the number of nodes that make it. */
type Vote = { readonly facts: SubnetFacts; readonly count: number };

const NO_NODES: NameLookup = new Set();

/**
 * Index of the zones and networks of the subnets in which nodes have ENIs. A subnet without any ENI is unknown: only
 * ipamd calls the cloud. All nodes report the same, unless an object was edited by hand. Where they differ, the answer
 * depends on what they report now, and never on the order of the reports.
 */
export class SubnetIndex {
  /** Subnet -> the nodes that report it. */
  readonly #nodes = new Map<string, Set<string>>();
  /** Subnet -> zone and network -> the number of nodes that report both. */
  readonly #votes = new Map<string, Map<string, Vote>>();
  readonly #agreed = new Map<string, SubnetFacts>();
  /** Subnets with a network, the smallest network first; computed on the first use after a change. */
  #networks: readonly SubnetFacts[] | undefined;

  /** Replaces what a node reported before by what it reports now. Returns whether an answer may have changed. */
  update(before: NecFacts | undefined, after: NecFacts | undefined): boolean {
    const old = reportsOf(before);
    const now = reportsOf(after);
    let isChanged = false;
    for (const subnetId of new Set([...old.keys(), ...now.keys()])) {
      const was = old.get(subnetId);
      const is = now.get(subnetId);
      if (was !== undefined && is !== undefined && keyOf(was) === keyOf(is)) continue;
      if (before !== undefined && was !== undefined) this.#remove(before.name, was);
      if (after !== undefined && is !== undefined) this.#add(after.name, is);
      isChanged = this.#updateAgreed(subnetId) || isChanged;
    }
    return isChanged;
  }

  /** Returns what most nodes report about a subnet; of equally frequent zones or networks the one that sorts first. */
  get(subnetId: string): SubnetFacts | undefined {
    return this.#agreed.get(subnetId);
  }

  /** Returns the nodes that have an ENI in a subnet. */
  nodesIn(subnetId: string): NameLookup {
    return this.#nodes.get(subnetId) ?? NO_NODES;
  }

  /** Finds the subnet that contains an address. Where networks overlap, the smallest; of equal ones the first by id. */
  find(ip: string): SubnetFacts | undefined {
    this.#networks ??= [...this.#agreed.values()].filter(({ cidr }) => cidr !== '').sort(byNetwork);
    return this.#networks.find(({ cidr }) => isInCidr(ip, cidr));
  }

  #add(nodeName: string, facts: SubnetFacts): void {
    const { subnetId } = facts;
    const names = this.#nodes.get(subnetId) ?? new Set();
    this.#nodes.set(subnetId, names.add(nodeName));
    const votes = this.#votes.get(subnetId) ?? new Map<string, Vote>();
    const count = (votes.get(keyOf(facts))?.count ?? 0) + 1;
    this.#votes.set(subnetId, votes.set(keyOf(facts), { facts, count }));
  }

  #remove(nodeName: string, facts: SubnetFacts): void {
    const names = this.#nodes.get(facts.subnetId);
    names?.delete(nodeName);
    if (names?.size === 0) this.#nodes.delete(facts.subnetId);
    const votes = this.#votes.get(facts.subnetId);
    const count = (votes?.get(keyOf(facts))?.count ?? 0) - 1;
    if (count > 0) votes?.set(keyOf(facts), { facts, count });
    else votes?.delete(keyOf(facts));
    if (votes?.size === 0) this.#votes.delete(facts.subnetId);
  }

  /** Updates what most nodes report about a subnet; returns whether that changed. */
  #updateAgreed(subnetId: string): boolean {
    const before = this.#agreed.get(subnetId);
    const agreed = agreedOf([...(this.#votes.get(subnetId)?.values() ?? [])]);
    if (before?.zone === agreed?.zone && before?.cidr === agreed?.cidr) return false;
    if (agreed === undefined) this.#agreed.delete(subnetId);
    else this.#agreed.set(subnetId, agreed);
    this.#networks = undefined;
    return true;
  }
}

/** Returns what a node reports, by subnet. Of several networks the one that sorts first; one of its ENIs may lack it. */
function reportsOf(nec: NecFacts | undefined): ReadonlyMap<string, SubnetFacts> {
  const reports = new Map<string, SubnetFacts>();
  if (nec === undefined || nec.zone === '') return reports;
  for (const { subnetId, cidr: text } of nec.enis) {
    if (subnetId === '') continue;
    const cidr = parseCidr(text) === undefined ? '' : text;
    const other = reports.get(subnetId)?.cidr ?? '';
    const isOther = other !== '' && (cidr === '' || other < cidr);
    reports.set(subnetId, { subnetId, zone: nec.zone, cidr: isOther ? other : cidr });
  }
  return reports;
}

function agreedOf(votes: readonly Vote[]): SubnetFacts | undefined {
  const zone = mostFrequent(votes, ({ facts }) => facts.zone);
  const ofZone = votes.filter(({ facts }) => facts.zone === zone);
  const withNetwork = ofZone.filter(({ facts }) => facts.cidr !== '');
  const cidr = mostFrequent(withNetwork, ({ facts }) => facts.cidr);
  return withNetwork.find(({ facts }) => facts.cidr === cidr)?.facts ?? ofZone[0]?.facts;
}

/** Returns the most frequent value; of equally frequent ones the one that sorts first. */
function mostFrequent(votes: readonly Vote[], valueIn: (vote: Vote) => string): string | undefined {
  const counts = new Map<string, number>();
  for (const vote of votes) counts.set(valueIn(vote), (counts.get(valueIn(vote)) ?? 0) + vote.count);
  const ranked = [...counts].sort(([a, ofA], [b, ofB]) => ofB - ofA || (a < b ? -1 : 1));
  return ranked[0]?.[0];
}

function byNetwork(a: SubnetFacts, b: SubnetFacts): number {
  return lengthOf(b) - lengthOf(a) || (a.subnetId < b.subnetId ? -1 : 1);
}

function lengthOf({ cidr }: SubnetFacts): number {
  return parseCidr(cidr)?.prefixLength ?? 0;
}

function keyOf({ zone, cidr }: SubnetFacts): string {
  return `${zone} ${cidr}`;
}
