import type { NodeEniAddress, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from './claim-marks.ts';
import type { NodeView } from './node-view.ts';
import { isIpv4, isShared } from './with-enis.ts';

/**
 * What is planned for an address:
 *
 * ```
 *   pooled   it belongs to no claim: any Pod may get it
 *   serves   the Pod of its claim is on this node and is to have this address
 *   stays    it is static and has no Pod; also when the claim has no request: then nothing is changed
 *   handed   another node takes it over, once the agent has released it
 *   goes     it is unassigned, once the agent has released it
 * ```
 */
export type AddressPlan = 'pooled' | 'serves' | 'stays' | 'handed' | 'goes';

/** The plan for each address of a node. */
export type AddressPlans = {
  of(address: NodeEniAddress): AddressPlan;
  /** The address is taken without an offer of this node's agent: the agent does not answer, and the Pod is deleted. */
  isTakenOver(address: NodeEniAddress): boolean;
  /** A call of another node for the address's claim is in flight: nothing is changed here. */
  isBusyElsewhere(address: NodeEniAddress): boolean;
};

/** What plans depend on, beside the addresses. */
type PlanView = Pick<NodeView, 'claims' | 'inUse' | 'claimCallsElsewhere'>;

/** Derives the plan for each marked address of a node from the claims' requests. */
export function planAddresses(view: PlanView, status: NodeEniConfigStatus): AddressPlans {
  const chosen = chosenOf(view, status);
  const requestOf = ({ claim }: NodeEniAddress) =>
    claim === undefined ? undefined : view.claims?.get(claimKeyOf(claim));
  return {
    of: (address) => {
      if (address.claim === undefined) return 'pooled';
      const request = requestOf(address);
      switch (request?.goal) {
        case undefined:
        case 'keep':
          return 'stays';
        case 'here':
          return chosen.get(request.key) === address.ip ? 'serves' : 'goes';
        case 'elsewhere':
          return request.willMigrate === true ? 'handed' : 'goes';
        case 'free':
          return 'goes';
      }
    },
    isTakenOver: (address) => requestOf(address)?.mayTakeOver === true && view.inUse?.has(address.ip) !== true,
    isBusyElsewhere: ({ claim }) => claim !== undefined && view.claimCallsElsewhere?.has(claimKeyOf(claim)) === true,
  };
}

/** The one address for each claim whose Pod is here, where it is known or one can be selected. */
function chosenOf({ claims }: PlanView, status: NodeEniConfigStatus): ReadonlyMap<string, string> {
  const chosen = new Map<string, string>();
  const here = [...(claims?.values() ?? [])].filter(({ goal }) => goal === 'here');
  for (const { key, ip } of here) if (ip !== undefined) chosen.set(key, ip);
  if (chosen.size === here.length) return chosen;
  const open = new Set(here.flatMap(({ key }) => (chosen.has(key) ? [] : [key])));
  for (const [key, { ip }] of markedOf(status)) if (open.has(key) && !chosen.has(key)) chosen.set(key, ip);
  return chosen;
}

/** Marked addresses in the order of preference: Assigned before Releasing, with a Pod before those without. */
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
