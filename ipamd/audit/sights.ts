import type { Eni } from '../../cloud/cloud.ts';
import { ENI_TAG } from './find-orphans.ts';

/** A node, as far as ENIs are told apart by it. */
export type SightOwner = {
  readonly name: string;
  /** Of the NodeENIConfig. */
  readonly uid?: string | undefined;
  readonly instanceId: string | undefined;
};

/**
 * Sorts the ENIs of one sweep by node: those that its object made, those on its instance that no other object made, and
 * those that carry its name and are on no other node's instance; primary ones left out. A kept one, which moves, is the
 * node's that `keptOn` names. Pure.
 */
export function sightsOf(
  enis: readonly Eni[],
  owners: readonly SightOwner[],
  keptOn: (eniId: string) => string | undefined = () => undefined,
): ReadonlyMap<string, readonly Eni[]> {
  const names = new Set(owners.map((owner) => owner.name));
  const uids = new Map(owners.map(({ name, uid }) => [name, uid]));
  const byInstance = new Map(
    owners.flatMap(({ name, instanceId }) => (instanceId === undefined ? [] : [[instanceId, name]])),
  );
  const sights = new Map<string, Eni[]>(owners.map(({ name }) => [name, []]));
  for (const eni of enis) {
    if (eni.isPrimary) continue;
    const tagged = eni.tags[ENI_TAG.node] ?? '';
    const uid = uids.get(tagged);
    const maker = uid !== undefined && uid === eni.tags[ENI_TAG.uid] ? tagged : undefined;
    const onIt = byInstance.get(eni.attachment?.instanceId ?? '');
    const owner = keptOn(eni.eniId) ?? maker ?? onIt ?? (names.has(tagged) ? tagged : undefined);
    if (owner !== undefined) sights.get(owner)?.push(eni);
  }
  return sights;
}
