import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { KeptEni } from '../nec/kept-eni.ts';
import type { VpcEniEntry } from './vpc-eni-entry.ts';

/** An ENI that the object of a node has with the mark of a claim. */
export type MarkedEni = {
  readonly nodeName: string;
  readonly eni: NodeEniInfo;
  /** `namespace/name` */
  readonly claim: string;
};

/**
 * Puts the ENIs that are kept for Pods of one name into the words of a node's decisions, by id: what VpcENIs say, and of
 * one that has no VpcENI yet what the object of its node says. Pure.
 */
export function keptEnisOf(
  entries: Iterable<VpcEniEntry>,
  marked: Iterable<MarkedEni> = [],
): ReadonlyMap<string, KeptEni> {
  const kept = new Map<string, KeptEni>();
  for (const { nodeName, eni, claim } of marked) {
    const { eniID: eniId, name = '', mac, primaryIP: primaryIp = '', subnetID: subnetId = '' } = eni;
    const { gateway = '', subnetCIDR: subnetCidr = '' } = eni;
    kept.set(eniId, {
      eniId,
      name,
      mac,
      primaryIp,
      subnetId,
      gateway,
      subnetCidr,
      claim,
      isAlone: false,
      isFree: false,
      nodeName,
    });
  }
  for (const entry of entries) {
    const { eniId, claim, mac } = entry;
    if (eniId === '' || claim === '' || mac === '') continue;
    kept.set(eniId, keptEniOf(entry));
  }
  return kept;
}

function keptEniOf(entry: VpcEniEntry): KeptEni {
  const { eniId, name, mac, primaryIp, subnetId, gateway, subnetCidr, claim, zone, phase, nodeName } = entry;
  const isWhole = [primaryIp, subnetId, gateway, subnetCidr].every((text) => text !== '');
  return {
    ...{ eniId, mac, primaryIp, subnetId, gateway, subnetCidr, claim },
    name: name === eniId ? '' : name,
    ...(zone === '' ? {} : { zone }),
    isAlone: phase === 'Available' || phase === 'Deleting',
    isFree: phase === 'Available' && !entry.isLeaving && isWhole,
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
