import { CLOUD_FINALIZER } from '../../crd/names.ts';
import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { hasFinalizer, withoutFinalizer } from '../../kube/finalizers.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';

/** NodeENIConfigs. */
export const NODE_ENI_CONFIGS = resourceTypeOf(NODE_ENI_CONFIG_KIND);

/**
 * Lets a NodeENIConfig go whose every ENI was given back. The write is guarded by the very object on which that was
 * decided: one that changed since is decided anew. One that nobody wants deleted keeps its finalizer.
 * @throws KubeError CONFLICT when it changed
 */
export async function releaseConfig(kube: KubeClient, released: KubeObject, signal: AbortSignal): Promise<void> {
  if (released.metadata.deletionTimestamp === undefined || !hasFinalizer(released, CLOUD_FINALIZER)) return;
  const { name } = released.metadata;
  const change = (current: KubeObject) => withoutFinalizer(current, CLOUD_FINALIZER);
  await updateGuarded(kube, NODE_ENI_CONFIGS, { name }, change, { current: released, attempts: 1, signal });
}
