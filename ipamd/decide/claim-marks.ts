import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { refOfKey } from '../cache/pod-facts.ts';
import type { Intent } from './decision.ts';

/** Claim mark of an address: the claim that the address belongs to, and the Pod that may use it now. */
type ClaimMark = NonNullable<NodeEniAddress['claim']>;

/** Returns the key of a mark's claim: `namespace/name`. */
export function claimKeyOf({ namespace, name }: Pick<ClaimMark, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** Returns the key of an ENI's claim; undefined for a pool ENI. */
export function eniClaimOf({ claim }: Pick<NodeEniInfo, 'claim'>): string | undefined {
  return claim === undefined ? undefined : claimKeyOf(claim);
}

/** Builds the mark of a claim. Without a uid no Pod may use the address. */
export function claimMarkOf(key: string, uid?: string): ClaimMark {
  return { ...refOfKey(key), ...(uid === undefined ? {} : { uid }) };
}

/**
 * Returns a newly assigned address with its claim mark: of the claim that the address belongs to, else of the claim
 * that the call was made for. The mark has no uid yet.
 * @param reserved Claims by their static address.
 * @param callClaim The claim that the call was made for.
 */
export function withClaimMark(
  address: NodeEniAddress,
  reserved: ReadonlyMap<string, string> | undefined,
  callClaim?: string,
): NodeEniAddress {
  const key = reserved?.get(address.ip) ?? callClaim;
  return key === undefined ? address : { ...address, claim: claimMarkOf(key) };
}

/**
 * Lists the claims that an intent's call concerns: the intent's own claim, and those of the addresses that it takes
 * off.
 */
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
