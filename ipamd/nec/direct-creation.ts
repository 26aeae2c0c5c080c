import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from './decision.ts';

/** Tag of ENIs that are handed to one Pod: tells them from shared ones when nothing but the cloud knows of them. */
export const MODE_TAG = { name: 'tke-eni-mode', direct: 'direct-eni' } as const;

/** Tells whether an intent makes an exclusive ENI. Pure. */
export function isDirectCreation({ action, tags }: Intent): boolean {
  return action === 'CreateNetworkInterface' && tags?.[MODE_TAG.name] === MODE_TAG.direct;
}

/** The fields of an entry whose ENI an intent makes: its mode, and whom it is for. Empty for a shared one. Pure. */
export function directFieldsOf(intent: Intent): Pick<NodeEniInfo, 'mode' | 'claim'> {
  if (!isDirectCreation(intent)) return {};
  const claim = intent.claim === undefined ? undefined : claimOfKey(intent.claim);
  return { mode: 'direct-eni', ...(claim === undefined ? {} : { claim }) };
}

/** Reads `namespace/name`; undefined for what is no such key. Pure. */
export function claimOfKey(key: string): { readonly namespace: string; readonly name: string } | undefined {
  const slash = key.indexOf('/');
  if (slash < 1 || slash === key.length - 1) return undefined;
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Writes whom an ENI is kept for as the key of its claim; undefined for one of the pool. Pure. */
export function claimKeyOf({ claim }: Pick<NodeEniInfo, 'claim'>): string | undefined {
  return claim === undefined ? undefined : `${claim.namespace}/${claim.name}`;
}
