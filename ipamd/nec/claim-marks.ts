import type { NodeEniAddress, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from './decision.ts';

/** Whose an address is, and which Pod may use it now. */
export type ClaimMark = NonNullable<NodeEniAddress['claim']>;

/** Names the claim of a mark: `namespace/name`. Pure. */
export function claimKeyOf({ namespace, name }: Pick<ClaimMark, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** Makes the mark of a claim; without a uid nobody may use the address. Pure. */
export function claimMarkOf(key: string, uid?: string): ClaimMark {
  const [namespace = '', name = ''] = key.split('/');
  return { namespace, name, ...(uid === undefined ? {} : { uid }) };
}

/**
 * Returns the address as one that has just come: with the mark of the claim that it is reserved for, or that it was asked
 * for, and then without a uid. Pure.
 * @param reserved Claims by the address that is theirs.
 * @param asked The claim that the call was for.
 */
export function markedOnArrival(
  address: NodeEniAddress,
  reserved: ReadonlyMap<string, string> | undefined,
  asked?: string,
): NodeEniAddress {
  const key = reserved?.get(address.ip) ?? asked;
  return key === undefined ? address : { ...address, claim: claimMarkOf(key) };
}

/** Lists the claims that the call of an intent is about: that of the intent, and those of the addresses that it takes. Pure. */
export function claimKeysOf(intent: Intent, { eniInfos = [] }: NodeEniConfigStatus): readonly string[] {
  const { claim, action, eniID, ips = [] } = intent;
  const own = claim === undefined ? [] : [claim];
  if (action !== 'UnassignPrivateIpAddresses') return own;
  const addresses = eniInfos.find((eni) => eni.eniID === eniID)?.addresses ?? [];
  const marked = addresses.flatMap((one) =>
    one.claim !== undefined && ips.includes(one.ip) ? [claimKeyOf(one.claim)] : [],
  );
  return [...own, ...marked];
}
