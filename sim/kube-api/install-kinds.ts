import { customResourceDefinition } from '../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../kube/resource-types.ts';

/** Makes the definitions of all our kinds, as ipamd does at its start. @throws KubeError ALREADY_EXISTS */
export async function installKinds(kube: KubeClient): Promise<void> {
  for (const kind of RESOURCE_KINDS) await kube.create(CUSTOM_RESOURCE_DEFINITIONS, customResourceDefinition(kind));
}
