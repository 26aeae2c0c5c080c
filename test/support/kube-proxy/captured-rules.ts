import { readFileSync } from 'node:fs';
import { isRecord } from '../../../runtime/decode.ts';
import { listOf, recordOf } from '../../../runtime/json.ts';

/**
 * The rules of kube-proxy 1.36.3 in nftables mode, which tells Pods by the range 172.31.0.0/16, for Services with and without
 * endpoints on the node, session affinity and external addresses; as `nft list table ip kube-proxy` (nft 1.0.6) prints them.
 */
export function kubeProxyText(): string {
  return capture('txt');
}

/** The same rules at the same time, as objects of `nft -j list table ip kube-proxy`. */
export function kubeProxyObjects(): readonly Readonly<Record<string, unknown>>[] {
  const answer: unknown = JSON.parse(capture('json'));
  return listOf(recordOf(answer)['nftables'])
    .filter(isRecord)
    .filter((object) => !('metainfo' in object));
}

function capture(kind: 'txt' | 'json'): string {
  return readFileSync(new URL(`../../capture/kube-proxy-1.36-nftables.${kind}`, import.meta.url), 'utf8');
}
