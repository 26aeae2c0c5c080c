import type { SubnetConfig } from './decide-subnet-config.ts';

/** Whether a configuration comes into force. */
type Adoption =
  | { readonly kind: 'adopt'; readonly config: SubnetConfig; readonly unknown: readonly string[] }
  /** The last good one stays in force. */
  | { readonly kind: 'keep'; readonly unknown: readonly string[] };

/**
 * Decides whether a configuration comes into force. One with faults, or with subnets that the cloud does not have, does
 * not while there is a last good one. The very first one comes into force with its good part, because otherwise there
 * would be none.
 */
export function decideAdoption(facts: {
  readonly candidate: SubnetConfig;
  readonly hasFaults: boolean;
  readonly lastGood: SubnetConfig | undefined;
  /** Tells whether the cloud has a subnet. */
  readonly isKnown: (subnetId: string) => boolean;
}): Adoption {
  const { candidate, lastGood } = facts;
  const unknown = candidate.subnetIds.filter((id) => !facts.isKnown(id));
  const isGood = !facts.hasFaults && unknown.length === 0;
  const goodPart = { ...candidate, subnetIds: candidate.subnetIds.filter((id) => facts.isKnown(id)) };
  // The good part of the first one is in force already from an earlier pass.
  const isInForce = JSON.stringify(goodPart) === JSON.stringify(lastGood);
  if (isGood || isInForce || lastGood === undefined) return { kind: 'adopt', config: goodPart, unknown };
  return { kind: 'keep', unknown };
}
