import type { Instance } from '../../cloud/cloud.ts';
import { NODE_SEEN_INSTANCE_ANNOTATION } from '../../crd/names.ts';
import type { CloudNode } from './cloud-node.ts';

/** The instance of a Node that the cloud once described. */
type SeenInstance = { readonly vpcId: string; readonly instanceId: string };

/** Renders the value of the annotation: `VPC/INSTANCE`. */
export function renderSeen({ vpcId, instanceId }: Pick<Instance, 'vpcId' | 'instanceId'>): string {
  return `${vpcId}/${instanceId}`;
}

/** Reads which instance of which VPC was once described for a Node; undefined: none, or the annotation is not readable. */
export function readSeen({ annotations }: Pick<CloudNode, 'annotations'>): SeenInstance | undefined {
  const [, vpcId, instanceId] =
    /^(vpc-[a-z0-9]+)\/(ins-[a-z0-9]+)$/.exec(annotations[NODE_SEEN_INSTANCE_ANNOTATION] ?? '') ?? [];
  return vpcId === undefined || instanceId === undefined ? undefined : { vpcId, instanceId };
}
