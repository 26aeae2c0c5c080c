import type { Eni } from '../../cloud/cloud.ts';
import { ENI_TAG } from '../../crd/cloud-tags.ts';

/** A node with the fields that assign ENIs to it. */
type AuditedNode = {
  readonly name: string;
  /** Of the NodeENIConfig. */
  readonly uid?: string | undefined;
  readonly instanceId: string | undefined;
};

/**
 * Groups the ENIs of one sweep by node: those that its object created, those on its instance that no other object
 * created, and those with its name in their tags that are on no other node's instance; without primary ones. A static
 * ENI, which moves, belongs to the node that `staticNodeOf` returns.
 */
export function groupEnisByNode(
  enis: readonly Eni[],
  owners: readonly AuditedNode[],
  staticNodeOf: (eniId: string) => string | undefined = () => undefined,
): ReadonlyMap<string, readonly Eni[]> {
  const names = new Set(owners.map((owner) => owner.name));
  const uids = new Map(owners.map(({ name, uid }) => [name, uid]));
  const byInstance = new Map(
    owners.flatMap(({ name, instanceId }) => (instanceId === undefined ? [] : [[instanceId, name]])),
  );
  const groups = new Map<string, Eni[]>(owners.map(({ name }) => [name, []]));
  for (const eni of enis) {
    if (eni.isPrimary) continue;
    const tagged = eni.tags[ENI_TAG.node] ?? '';
    const uid = uids.get(tagged);
    const creator = uid !== undefined && uid === eni.tags[ENI_TAG.uid] ? tagged : undefined;
    const attachedTo = byInstance.get(eni.attachment?.instanceId ?? '');
    const owner = staticNodeOf(eni.eniId) ?? creator ?? attachedTo ?? (names.has(tagged) ? tagged : undefined);
    if (owner !== undefined) groups.get(owner)?.push(eni);
  }
  return groups;
}
