import { PODS, VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import type { Soak } from './soak.ts';

/**
 * Deletes claims whose owner is gone, as Kubernetes' garbage collector does within seconds; that of the API server here
 * acts when the owner goes, and misses what is made for it a moment later.
 */
export async function collectWithoutOwner(soak: Soak): Promise<void> {
  const { server, admin } = soak.system.cluster;
  const uids = new Set(server.objects(PODS.plural).map(({ metadata }) => metadata.uid));
  for (const { metadata } of server.objects(VPC_IP_CLAIMS.plural, VPC_IP_CLAIMS.group)) {
    const owners = metadata.ownerReferences ?? [];
    if (owners.length === 0 || owners.some(({ uid }) => uids.has(uid))) continue;
    await admin.delete(VPC_IP_CLAIMS, { namespace: metadata.namespace ?? '', name: metadata.name });
    soak.tally.add('claims without owner collected');
  }
}
