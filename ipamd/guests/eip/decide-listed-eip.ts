import type { Eip } from '../../../cloud/cloud.ts';
import type { EipSnapshot, EipTarget } from './eip-view.ts';

/** The EIP of a Pod's list that its claim may have. */
type ListedChoice =
  | { readonly kind: 'chosen'; readonly eip: Eip }
  /** `isFinal`: waiting alone does not help. */
  | { readonly kind: 'none'; readonly message: string; readonly isFinal: boolean };

/**
 * Selects one of a list of existing EIPs. The number at the end of the Pod's name selects the position. A Pod without a
 * number gets the first free one, starting at a position that depends on its name alone, so that many Pods do not try
 * the same one. An EIP that another claim has, or that is bound elsewhere, is never taken.
 */
export function decideListedEip(
  key: string,
  eipIds: readonly string[],
  snapshot: EipSnapshot,
  target: EipTarget | undefined,
): ListedChoice {
  const ordinal = ordinalOf(key);
  const inOrder = ordinal === undefined ? rotated(eipIds, key) : eipIds.slice(ordinal, ordinal + 1);
  if (inOrder.length === 0) {
    const message = `eip-id-list has ${eipIds.length} EIPs, none for number ${ordinal}; add one to the list`;
    return { kind: 'none', message, isFinal: true };
  }
  const refusals: string[] = [];
  for (const eipId of inOrder) {
    const eip = snapshot.byId.get(eipId);
    const refusal = refusalOf(eipId, eip, snapshot, target);
    if (refusal === undefined && eip !== undefined) return { kind: 'chosen', eip };
    refusals.push(refusal ?? `${eipId} does not exist`);
  }
  return { kind: 'none', message: refusals.join('; '), isFinal: false };
}

/** Returns why an EIP cannot be taken; undefined when it can. */
export function refusalOf(
  eipId: string,
  eip: Eip | undefined,
  snapshot: Pick<EipSnapshot, 'rivals'>,
  target: EipTarget | undefined,
): string | undefined {
  if (eip === undefined) return `${eipId} does not exist in this account and region`;
  const rival = snapshot.rivals.get(eipId);
  if (rival !== undefined) return `${eipId} belongs to the EIPClaim ${rival}`;
  const isHere = target !== undefined && eip.eniId === target.eniId && eip.privateIp === target.ip;
  if (isHere || eip.status === 'UNBIND') return undefined;
  return `${eipId} is ${bindingText(eip)}; it is not taken away from there`;
}

/** Describes what an EIP is bound to. */
export function bindingText(eip: Eip): string {
  const { eniId, privateIp, instanceId, status } = eip;
  const parts = [
    ...(instanceId === undefined ? [] : [`instance ${instanceId}`]),
    ...(eniId === undefined ? [] : [`ENI ${eniId}`]),
    ...(privateIp === undefined ? [] : [`address ${privateIp}`]),
  ];
  return parts.length === 0 ? status : `bound to ${parts.join(', ')} (${status})`;
}

function ordinalOf(key: string): number | undefined {
  const [, digits] = /-(0|[1-9][0-9]{0,5})$/.exec(key) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

function rotated(eipIds: readonly string[], key: string): readonly string[] {
  let sum = 0;
  for (const character of key) sum = (sum * HASH_FACTOR + (character.codePointAt(0) ?? 0)) % HASH_MODULUS;
  const start = eipIds.length === 0 ? 0 : sum % eipIds.length;
  return [...eipIds.slice(start), ...eipIds.slice(0, start)];
}

/** Constants of a small multiplicative hash; it only has to spread the names. */
const HASH_FACTOR = 31;
const HASH_MODULUS = 1_000_003;
