import type { Eni } from '../../cloud/cloud.ts';
import { ENI_TAG } from '../../crd/cloud-tags.ts';
import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ObservedEni } from '../decide/decision.ts';
import { evaluateDrift } from '../decide/evaluate-drift.ts';
import { isWithCreator } from '../decide/observed-eni.ts';
import type { StaticEni } from '../decide/static-eni.ts';

/** A NodeENIConfig as the cache contains it. */
export type AuditedNec = { readonly object: KubeObject; readonly decoded: NodeEniConfig | undefined };

/** Dependencies of the comparison. */
export type ComparisonDeps = {
  /** Every NodeENIConfig of the cache, unreadable ones included. */
  readonly necs: { values(): Iterable<AuditedNec> };
  /** Finds a static ENI, whatever its tags. */
  readonly findStatic: (eniId: string) => Pick<StaticEni, 'nodeName'> | undefined;
  /** Converts an ENI of a node to the terms of the NodeENIConfig, as the reconcile of the node does. */
  readonly convertEni: (eni: Eni, nodeName: string) => ObservedEni;
  /** Makes a node describe the cloud and repair its object. */
  readonly requestRepair: (name: string) => void;
  readonly log: Logger;
};

/** Number of differences in one line of the log. */
const MAX_LISTED = 20;

/**
 * Begins a comparison of all nodes with all ENIs, before these are listed. The function that it returns requests a repair of
 * nodes that differ. A node whose object changed meanwhile is left for the next comparison: it may differ for that alone.
 */
export function beginComparison(deps: ComparisonDeps): (enis: readonly Eni[]) => void {
  const { necs, convertEni, findStatic, requestRepair, log } = deps;
  const before = new Map(
    [...necs.values()].map(({ object: { metadata } }) => [metadata.name, metadata.resourceVersion]),
  );
  return (enis) => {
    const all = [...necs.values()];
    const groups = groupEnisByNode(enis, all, findStatic);
    for (const { object, decoded } of all) {
      const { name, resourceVersion } = object.metadata;
      if (decoded === undefined || before.get(name) !== resourceVersion) continue;
      const observed = new Map((groups.get(name) ?? []).map((eni) => [eni.eniId, convertEni(eni, name)]));
      const drifts = evaluateDrift(decoded.status ?? {}, { enis: observed, isComplete: true });
      if (drifts.length === 0) continue;
      log.warn('object and cloud differ', { node: name, drifts: drifts.slice(0, MAX_LISTED), count: drifts.length });
      requestRepair(name);
    }
  };
}

/**
 * Groups the ENIs of one sweep by node: those that its object created and still has, others on its instance, and those with its name
 * in their tags that are on no other node's instance. A static ENI, which moves, belongs to the node on whose instance it is, and
 * where it is on none, or on one with two objects, to the one that its VpcENI names.
 * @param enis without primary ones
 */
function groupEnisByNode(
  enis: readonly Eni[],
  necs: readonly AuditedNec[],
  findStatic: ComparisonDeps['findStatic'],
): ReadonlyMap<string, readonly Eni[]> {
  const byName = new Map(necs.map((nec) => [nec.object.metadata.name, nec]));
  const byInstance = new Map(necs.map(({ object, decoded }) => [decoded?.status?.instanceID, object.metadata.name]));
  const instanceOf = (name: string): string | undefined => byName.get(name)?.decoded?.status?.instanceID;
  const nodeOf = ({ eniId, tags, attachment }: Eni): string => {
    const tagged = tags[ENI_TAG.node] ?? '';
    const { object } = byName.get(tagged) ?? {};
    const known = findStatic(eniId);
    const isCreator =
      known === undefined &&
      object !== undefined &&
      object.metadata.uid === tags[ENI_TAG.uid] &&
      isWithCreator(instanceOf(tagged), attachment?.instanceId);
    const attachedTo = isCreator ? undefined : attachment && byInstance.get(attachment.instanceId);
    const named = known?.nodeName;
    const isNamedThere = named !== undefined && instanceOf(named) === attachment?.instanceId;
    return (isNamedThere ? undefined : attachedTo) ?? named ?? tagged;
  };
  return Map.groupBy(enis, nodeOf);
}
