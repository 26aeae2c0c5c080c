import { type ObservedNec, type ReadinessSpec, UNREADABLE } from './publication.ts';

/** All inputs of the decision on a publication of the role `uplinks`. */
type ReadinessInput = {
  readonly nec: ObservedNec;
  /** Extended resources that the node serves now. */
  readonly readyResources: readonly string[];
  /** Name of this agent's journal. */
  readonly life: string;
  /** The supply epoch in force on the node. */
  readonly epochInForce: number;
};

/**
 * Decides what an agent with the role `uplinks` writes into its NodeENIConfig; undefined when the object has it. Demand
 * and offers are not its own: ipamd takes them from the CiliumNode. Of the epoch it writes one thing: that an epoch
 * higher than the object's was in force. The object is of a restored etcd then, and nothing else in it shows that.
 */
export function decideReadiness({
  nec,
  readyResources,
  life,
  epochInForce,
}: ReadinessInput): ReadinessSpec | undefined {
  const isRestored = nec.supplyEpoch !== UNREADABLE && nec.supplyEpoch < epochInForce;
  const isWitness = isRestored && (nec.spec.observedEpoch ?? 0) < epochInForce;
  const isSame = nec.spec.life === life && nec.spec.readyResources.join() === readyResources.join();
  if (isSame && !isWitness) return undefined;
  return { readyResources, life, ...(isWitness ? { observedEpoch: epochInForce } : {}) };
}
