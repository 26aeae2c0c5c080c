import type { Eni } from '../../cloud/cloud.ts';
import { ENI_TAG } from './find-orphans.ts';

/** A node, as far as ENIs are told apart by it. */
export type SightOwner = { readonly name: string; readonly instanceId: string | undefined };

/**
 * Sorts the ENIs of one sweep by node: those on the node's instance, and those that carry its tag and are on no other
 * node's instance; primary ones left out. Pure.
 */
export function sightsOf(enis: readonly Eni[], owners: readonly SightOwner[]): ReadonlyMap<string, readonly Eni[]> {
  const names = new Set(owners.map((owner) => owner.name));
  const byInstance = new Map(
    owners.flatMap(({ name, instanceId }) => (instanceId === undefined ? [] : [[instanceId, name]])),
  );
  const sights = new Map<string, Eni[]>(owners.map(({ name }) => [name, []]));
  for (const eni of enis) {
    if (eni.isPrimary) continue;
    const tagged = eni.tags[ENI_TAG.node] ?? '';
    const owner = byInstance.get(eni.attachment?.instanceId ?? '') ?? (names.has(tagged) ? tagged : undefined);
    if (owner !== undefined) sights.get(owner)?.push(eni);
  }
  return sights;
}
