import type { KeptEni } from '../nec/kept-eni.ts';
import type { VpcEniEntry } from './vpc-eni-entry.ts';

/** Puts the ENIs that are kept for Pods of one name into the words of a node's decisions, by id. Pure. */
export function keptEnisOf(entries: Iterable<VpcEniEntry>): ReadonlyMap<string, KeptEni> {
  const kept = new Map<string, KeptEni>();
  for (const entry of entries) {
    const { eniId, claim, mac } = entry;
    if (eniId === '' || claim === '' || mac === '') continue;
    kept.set(eniId, keptEniOf(entry));
  }
  return kept;
}

function keptEniOf({ eniId, name, mac, primaryIp, subnetId, claim, zone, phase, nodeName, isLeaving }: VpcEniEntry) {
  return {
    eniId,
    name: name === eniId ? '' : name,
    mac,
    primaryIp,
    subnetId,
    claim,
    ...(zone === '' ? {} : { zone }),
    isFree: phase === 'Available' && !isLeaving,
    ...(nodeName === '' ? {} : { nodeName }),
  };
}

/**
 * Tells whether an ENI is another's than this node's, whatever its tags say: it is kept, and on no node or on another. So
 * that the node that made it, whose tags it carries for life, does not take it for its own. Pure.
 */
export function isKeptElsewhere(kept: ReadonlyMap<string, KeptEni>, eniId: string, nodeName: string): boolean {
  const one = kept.get(eniId);
  return one !== undefined && one.nodeName !== nodeName;
}

/** Tells whether an ENI is this node's by its VpcENI, whatever its tags say. Pure. */
export function isKeptHere(kept: ReadonlyMap<string, KeptEni>, eniId: string, nodeName: string): boolean {
  return kept.get(eniId)?.nodeName === nodeName;
}
