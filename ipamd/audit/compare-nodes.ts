import type { Eni } from '../../cloud/cloud.ts';
import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ObservedEni } from '../decide/decision.ts';
import { evaluateDrift } from '../decide/evaluate-drift.ts';
import { groupEnisByNode } from './group-enis-by-node.ts';

/** A NodeENIConfig as the cache contains it. */
export type AuditedNec = { readonly object: KubeObject; readonly decoded: NodeEniConfig | undefined };

/** Dependencies of the comparison. */
export type ComparisonDeps = {
  /** Every NodeENIConfig of the cache, unreadable ones included. */
  readonly necs: { values(): Iterable<AuditedNec> };
  /** Returns the node of a static ENI, whatever its tags. */
  readonly staticNodeOf: (eniId: string) => string | undefined;
  /** Converts an ENI to the terms of the NodeENIConfig, as the reconcile of its node does. */
  readonly convertEni: (eni: Eni) => ObservedEni;
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
  const { necs, convertEni, staticNodeOf, requestRepair, log } = deps;
  const before = new Map(
    [...necs.values()].map(({ object: { metadata } }) => [metadata.name, metadata.resourceVersion]),
  );
  return (enis) => {
    const all = [...necs.values()];
    const owners = all.map(({ object: { metadata }, decoded }) => ({
      name: metadata.name,
      uid: metadata.uid,
      instanceId: decoded?.status?.instanceID,
    }));
    const groups = groupEnisByNode(enis, owners, staticNodeOf);
    for (const { object, decoded } of all) {
      const { name, resourceVersion } = object.metadata;
      if (decoded === undefined || before.get(name) !== resourceVersion) continue;
      const observed = new Map((groups.get(name) ?? []).map((eni) => [eni.eniId, convertEni(eni)]));
      const drifts = evaluateDrift(decoded.status ?? {}, { enis: observed, isComplete: true });
      if (drifts.length === 0) continue;
      log.warn('object and cloud differ', { node: name, drifts: drifts.slice(0, MAX_LISTED), count: drifts.length });
      requestRepair(name);
    }
  };
}
