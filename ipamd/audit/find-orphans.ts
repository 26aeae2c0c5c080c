import type { Eni } from '../../cloud/cloud.ts';
import { ENI_TAG, isOwnEni } from '../../crd/cloud-tags.ts';
import type { EniNames } from './eni-names.ts';

/** An ENI of this cluster that no object names. */
export type Orphan = {
  readonly eniId: string;
  readonly name: string;
  /** The node that it was created for, from its tag; undefined without the tag. */
  readonly nodeName: string | undefined;
  /** The instance that it has to be detached from first; not an instance of the cluster. */
  readonly instanceId: string | undefined;
};

/**
 * Finds the ENIs that ipamd created for this cluster and that no object and no intent names, neither by id nor by the
 * name from their creation. An ENI on an instance of the cluster is no orphan: it is a difference between an object and
 * the cloud, and the object is repaired. An ENI that is being changed is left for the next audit.
 */
export function findOrphans(clusterId: string, enis: readonly Eni[], names: EniNames): readonly Orphan[] {
  return enis
    .filter((eni) => !eni.isPrimary && isOwnEni(eni.tags, clusterId))
    .filter((eni) => eni.state === 'AVAILABLE' && !isNamed(eni, names))
    .map((eni) => ({
      eniId: eni.eniId,
      name: eni.name,
      nodeName: eni.tags[ENI_TAG.node],
      instanceId: eni.attachment?.instanceId,
    }));
}

function isNamed(eni: Eni, names: EniNames): boolean {
  if (names.eniIds.has(eni.eniId) || names.resourceNames.has(eni.name)) return true;
  if (eni.attachment !== undefined && names.instanceIds.has(eni.attachment.instanceId)) return true;
  return names.unreadableNodes.has(eni.tags[ENI_TAG.node] ?? '');
}
