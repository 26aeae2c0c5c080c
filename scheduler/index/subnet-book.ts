import { isInCidr } from '../../crd/ip-text.ts';
import type { NecFacts } from './facts.ts';

/** What the ENIs of all nodes say of a subnet. */
export type SubnetFacts = { readonly subnetId: string; readonly zone: string; readonly cidr: string };

/** Names that can be asked for. */
export type Names = { has(name: string): boolean };

const NOBODY: Names = new Set();

/**
 * Knows the zones and networks of the subnets that ENIs are in. A subnet that no node has an ENI in is not known: the
 * cloud is not ours to ask.
 */
export class SubnetBook {
  /** Subnet -> node -> what it says. All nodes say the same, as long as nobody wrote nonsense. */
  readonly #told = new Map<string, Map<string, SubnetFacts>>();

  /** Takes in what a node says now, and forgets what it said before. */
  change(before: NecFacts | undefined, after: NecFacts | undefined): void {
    for (const { subnetId } of before?.enis ?? []) this.#forget(subnetId, before?.name ?? '');
    if (after === undefined || after.zone === '') return;
    for (const { subnetId, cidr } of after.enis) {
      if (subnetId === '') continue;
      const byNode = this.#told.get(subnetId) ?? new Map<string, SubnetFacts>();
      // One ENI of a node may lack what another says of the same subnet.
      byNode.set(after.name, { subnetId, zone: after.zone, cidr: cidr || (byNode.get(after.name)?.cidr ?? '') });
      this.#told.set(subnetId, byNode);
    }
  }

  /** Returns what most nodes say of a subnet; the first zone in the alphabet where they disagree evenly. */
  get(subnetId: string): SubnetFacts | undefined {
    const told = [...(this.#told.get(subnetId)?.values() ?? [])];
    const first = told[0];
    if (first === undefined || told.every(({ zone }) => zone === first.zone)) return fullest(told);
    const votes = Map.groupBy(told, ({ zone }) => zone);
    const ranked = [...votes.values()].sort(
      ([a], [b]) => (votes.get(b?.zone ?? '')?.length ?? 0) - (votes.get(a?.zone ?? '')?.length ?? 0) || order(a, b),
    );
    return fullest(ranked[0] ?? []);
  }

  /** Tells which nodes have an ENI in a subnet. */
  nodesIn(subnetId: string): Names {
    return this.#told.get(subnetId) ?? NOBODY;
  }

  /** Finds the subnet that an address lies in. */
  find(ip: string): SubnetFacts | undefined {
    for (const subnetId of this.#told.keys()) {
      const facts = this.get(subnetId);
      if (facts !== undefined && facts.cidr !== '' && isInCidr(ip, facts.cidr)) return facts;
    }
    return undefined;
  }

  #forget(subnetId: string, nodeName: string): void {
    const byNode = this.#told.get(subnetId);
    byNode?.delete(nodeName);
    if (byNode?.size === 0) this.#told.delete(subnetId);
  }
}

/** Who says the network too, whoever came first; of several networks the first in the alphabet. */
function fullest(told: readonly SubnetFacts[]): SubnetFacts | undefined {
  let best = told[0];
  for (const one of told) if (one.cidr !== '' && (best?.cidr === '' || one.cidr < (best?.cidr ?? ''))) best = one;
  return best;
}

function order(a: SubnetFacts | undefined, b: SubnetFacts | undefined): number {
  return (a?.zone ?? '') < (b?.zone ?? '') ? -1 : 1;
}
