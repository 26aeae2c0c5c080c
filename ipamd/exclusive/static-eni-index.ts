import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Informer } from '../../kube/informer.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import { VPC_ENIS_BY, type VpcEniEntry } from '../cache/vpc-eni-entry.ts';
import { eniClaimOf } from '../decide/claim-marks.ts';
import type { ClaimRequest } from '../decide/claim-request.ts';
import type { StaticEni } from '../decide/static-eni.ts';
import { isShared } from '../decide/with-enis.ts';
import { exclusiveEniIdsOf } from './run-vpc-enis.ts';

/** Caches that contain static ENIs. */
type StaticEniIndexDeps = {
  /** With an index by the claims whose marks an object contains; `byClaim` is its name. */
  readonly necs: Pick<Informer<NecEntry>, 'get' | 'byIndex'>;
  readonly byClaim: string;
  readonly vpcEnis: Pick<Informer<VpcEniEntry>, 'byIndex'>;
};

/** Index of the static exclusive ENIs, from caches. */
export class StaticEniIndex {
  readonly #deps: StaticEniIndexDeps;

  constructor(deps: StaticEniIndexDeps) {
    this.#deps = deps;
  }

  /** Returns the static ENIs of a node, and those of the claims whose Pods are on it; by id. */
  ofNode(name: string, requests: ReadonlyMap<string, ClaimRequest> | undefined): ReadonlyMap<string, StaticEni> {
    const { necs, vpcEnis, byClaim } = this.#deps;
    const ownNec = necs.get(name);
    const eniIds = ownNec === undefined ? [] : exclusiveEniIdsOf(ownNec);
    const keys = [...(requests?.values() ?? [])].filter(({ mode }) => mode === 'direct-eni').map(({ key }) => key);
    const entries = [
      ...eniIds.flatMap((eniId) => vpcEnis.byIndex(VPC_ENIS_BY.eni, eniId)),
      ...keys.flatMap((key) => vpcEnis.byIndex(VPC_ENIS_BY.claim, key)),
    ];
    const marked = keys.flatMap((key) => necs.byIndex(byClaim, key).flatMap((nec) => markedOf(nec, key)));
    return staticEnisOf(entries, marked);
  }

  /** Returns the static ENI of this id; undefined for other ENIs. */
  find(eniId: string): StaticEni | undefined {
    return staticEnisOf(this.#deps.vpcEnis.byIndex(VPC_ENIS_BY.eni, eniId)).get(eniId);
  }
}

function markedOf({ name, decoded }: NecEntry, key: string): readonly MarkedEni[] {
  const enis = decoded?.status?.eniInfos ?? [];
  return enis
    .filter((eni) => !isShared(eni) && eniClaimOf(eni) === key)
    .map((eni) => ({ nodeName: name, eni, claim: key }));
}

/** An ENI in the object of a node that has the mark of a claim. */
type MarkedEni = {
  readonly nodeName: string;
  readonly eni: NodeEniInfo;
  /** `namespace/name` */
  readonly claim: string;
};

/**
 * Converts static ENIs to the form that decisions about nodes use, by id: from VpcENIs, and for an ENI without a VpcENI
 * from the object of its node.
 */
export function staticEnisOf(
  entries: Iterable<VpcEniEntry>,
  marked: Iterable<MarkedEni> = [],
): ReadonlyMap<string, StaticEni> {
  const staticEnis = new Map<string, StaticEni>();
  for (const { nodeName, eni, claim } of marked) {
    const { eniID: eniId, name = '', mac, primaryIP: primaryIp = '', subnetID: subnetId = '' } = eni;
    const { gateway = '', subnetCIDR: subnetCidr = '' } = eni;
    staticEnis.set(eniId, {
      eniId,
      name,
      mac,
      primaryIp,
      subnetId,
      gateway,
      subnetCidr,
      claim,
      isDetached: false,
      isAttachable: false,
      nodeName,
    });
  }
  for (const entry of entries) {
    const { eniId, claim, mac } = entry;
    if (eniId === '' || claim === '' || mac === '') continue;
    staticEnis.set(eniId, toStaticEni(entry));
  }
  return staticEnis;
}

function toStaticEni(entry: VpcEniEntry): StaticEni {
  const { eniId, name, mac, primaryIp, subnetId, gateway, subnetCidr, claim, zone, phase, nodeName } = entry;
  const isComplete = [primaryIp, subnetId, gateway, subnetCidr].every((text) => text !== '');
  return {
    ...{ eniId, mac, primaryIp, subnetId, gateway, subnetCidr, claim },
    name: name === eniId ? '' : name,
    ...(zone === '' ? {} : { zone }),
    isDetached: phase === 'Available' || phase === 'Deleting',
    isAttachable: phase === 'Available' && !entry.isLeaving && isComplete,
    ...(nodeName === '' ? {} : { nodeName }),
  };
}
