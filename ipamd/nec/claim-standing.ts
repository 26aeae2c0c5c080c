import type { NodeEniAddress, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from './claim-marks.ts';
import type { NodeView } from './node-view.ts';
import { isIpv4, isShared } from './with-enis.ts';

/**
 * What is to become of an address:
 *
 * ```
 *   pooled   it is nobody's for longer than a Pod lives
 *   serves   its claim's Pod is on this node, and this is the address that it is to have
 *   stays    kept without a Pod; so is one of which nobody says what is wanted: nothing is guessed
 *   handed   another node's turn takes it over, once the agent has let go of it
 *   goes     it is taken off, once the agent has let go of it
 * ```
 */
export type ClaimStanding = 'pooled' | 'serves' | 'stays' | 'handed' | 'goes';

/** Tells what is to become of each address of a node. */
export type ClaimStandings = {
  of(address: NodeEniAddress): ClaimStanding;
  /** Nobody waits for the agent of this node: it will not answer, and its Pod is gone. */
  isTakenOver(address: NodeEniAddress): boolean;
  /** A call of another node for the address's claim is under way: nothing is done about it here. */
  isBusyElsewhere(address: NodeEniAddress): boolean;
};

/** Reads what is wanted of the marked addresses of a node. Pure. */
export function standingsOf(view: NodeView, status: NodeEniConfigStatus): ClaimStandings {
  const chosen = chosenOf(view, status);
  const wishOf = ({ claim }: NodeEniAddress) => (claim === undefined ? undefined : view.claims?.get(claimKeyOf(claim)));
  return {
    of: (address) => {
      if (address.claim === undefined) return 'pooled';
      const wish = wishOf(address);
      switch (wish?.want) {
        case undefined:
        case 'keep':
          return 'stays';
        case 'here':
          return chosen.get(wish.key) === address.ip ? 'serves' : 'goes';
        case 'elsewhere':
          return wish.isAwaited === true ? 'handed' : 'goes';
        case 'free':
          return 'goes';
      }
    },
    isTakenOver: (address) => wishOf(address)?.mayTakeOver === true && view.inUse?.has(address.ip) !== true,
    isBusyElsewhere: ({ claim }) => claim !== undefined && view.claimCallsElsewhere?.has(claimKeyOf(claim)) === true,
  };
}

/** The one address that each claim whose Pod is here is to have, where it is known or there is one to choose. */
function chosenOf({ claims }: NodeView, status: NodeEniConfigStatus): ReadonlyMap<string, string> {
  const chosen = new Map<string, string>();
  const here = [...(claims?.values() ?? [])].filter(({ want }) => want === 'here');
  for (const { key, ip } of here) if (ip !== undefined) chosen.set(key, ip);
  if (chosen.size === here.length) return chosen;
  const open = new Set(here.flatMap(({ key }) => (chosen.has(key) ? [] : [key])));
  for (const [key, { ip }] of markedOf(status)) if (open.has(key) && !chosen.has(key)) chosen.set(key, ip);
  return chosen;
}

/** Those that serve before those that go, those with a Pod before those without. */
function markedOf({
  eniInfos = [],
}: NodeEniConfigStatus): readonly (readonly [key: string, address: NodeEniAddress])[] {
  const marked = eniInfos
    .filter(isShared)
    .flatMap((eni) =>
      (eni.addresses ?? []).flatMap((address) =>
        address.claim === undefined || !isIpv4(address.ip) ? [] : [[claimKeyOf(address.claim), address] as const],
      ),
    );
  const rank = ({ state, claim }: NodeEniAddress) =>
    (state === 'Assigned' ? 0 : 2) + (claim?.uid === undefined ? 1 : 0);
  return [...marked].sort(([, one], [, other]) => rank(one) - rank(other));
}
