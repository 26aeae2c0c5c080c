import type { Certificate } from '../../cloud/certificates.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';

const HASH = /^[0-9a-f]{64}$/;

/** Returns the tag of the owner of a certificate that was uploaded for Ingresses of a cluster: the cluster, and the hash of the chain. */
export function certificateOwnerOf(clusterId: string, hash: string): string {
  return `${clusterId}/certificate/${hash}`;
}

/** Returns the hash of a certificate that was uploaded for Ingresses of this cluster; undefined: it is another one. */
export function hashOf(clusterId: string, { tags, isUploaded }: Certificate): string | undefined {
  const owner = tags[OWNER_TAG] ?? '';
  const prefix = certificateOwnerOf(clusterId, '');
  if (!isUploaded || tags[CLUSTER_TAG] !== clusterId || !owner.startsWith(prefix)) return undefined;
  const hash = owner.slice(prefix.length);
  return HASH.test(hash) ? hash : undefined;
}
