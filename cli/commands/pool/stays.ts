import { ageText } from '../../agent/duration-text.ts';
import { plural } from '../../output/plural.ts';

/** Why an ENI is not returned to the cloud: a code for programs (docs/cli.md), and one sentence for people. */
export type Stay = { readonly reason: string; readonly text: string };

/** One address of an ENI. idle: no Pod is known to use it, and the agent does not offer it. */
export type StayAddress = {
  readonly use: 'in-use' | 'cooling' | 'registered' | 'static' | 'idle' | 'offered' | 'releasing';
  /** The Pod that uses it, or the name that it is static for. */
  readonly owner?: string;
  readonly coolRemainingMs?: number;
};

/** Describes what becomes of the addresses of an ENI. @param isWhole One Pod has the ENI: its one address stands for it. */
export function usesOf(addresses: readonly StayAddress[], isWhole = false): readonly Stay[] {
  const found = Map.groupBy(addresses, ({ use }) => use);
  return Object.entries(TEXTS).flatMap(([reason, textOf]) => {
    const ofUse = found.get(reason as StayAddress['use']) ?? [];
    return ofUse.length === 0 ? [] : [{ reason, text: textOf(ofUse, isWhole) }];
  });
}

/** Stands in for reasons where nothing shows. */
export const UNKNOWN_STAY: Stay = {
  reason: 'unknown',
  text: 'nothing that shows here: an agent of an older release, an ipamd without a leader, or calls that are throttled or refused',
};

/** In the order in which reasons are shown. */
const TEXTS: Partial<Record<StayAddress['use'], (addresses: readonly StayAddress[], isWhole: boolean) => string>> = {
  'in-use': (addresses, isWhole) => {
    const owners = ownersOf(addresses);
    if (isWhole) return `the Pod ${owners.join(', ')} has it`;
    return `${owners.length === 1 ? '1 Pod uses' : `${owners.length} Pods use`} its addresses: ${namesText(owners)}`;
  },
  cooling: (addresses) => {
    const lastMs = Math.max(0, ...addresses.map(({ coolRemainingMs = 0 }) => coolRemainingMs));
    const verb = addresses.length === 1 ? 'cools' : 'cool';
    return `${plural(addresses.length, 'address')} ${verb} down, for ${ageText(lastMs)} more`;
  },
  registered: (addresses, isWhole) =>
    `${isWhole ? 'its address' : plural(addresses.length, 'address')} without a Pod: a load balancer may still have it as a target, until tke-cloud-controller-manager deregisters it`,
  static: (addresses, isWhole) => {
    const owners = namesText(ownersOf(addresses));
    return isWhole ? `it is static for ${owners}` : `${plural(addresses.length, 'static address')} for ${owners}`;
  },
  releasing: (addresses) => `ipamd unassigns ${plural(addresses.length, 'address')}`,
  offered: ({ length }, isWhole) =>
    `${isWhole ? 'it is' : `${plural(length, 'address')} ${length === 1 ? 'is' : 'are'}`} offered, and ipamd has not taken ${length === 1 ? 'it' : 'them'} yet`,
};

function ownersOf(addresses: readonly StayAddress[]): readonly string[] {
  return [...new Set(addresses.map(({ owner = 'a Pod without a name' }) => owner))];
}

const SHOWN_NAMES = 3;

function namesText(names: readonly string[]): string {
  const more = names.length - SHOWN_NAMES;
  return `${names.slice(0, SHOWN_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
