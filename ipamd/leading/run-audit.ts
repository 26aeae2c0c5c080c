import type { CallContext, Eni, Tags } from '../../cloud/cloud.ts';
import { ENI_TAG } from '../../crd/cloud-tags.ts';
import { countSweep } from '../audit/count-sweep.ts';
import { runSweep } from '../audit/run-sweep.ts';
import { sweptEnis } from '../audit/sweep-enis.ts';
import type { ObservedEni } from '../decide/decision.ts';
import { hasEniSubnets } from '../subnets/has-eni-subnets.ts';
import { BY_INSTANCE } from './open-informers.ts';
import type { LeaderTerm } from './open-term.ts';

/** Compares all nodes and ENIs of the cluster until aborted. Rejects with the signal's reason. */
export async function runAudit(term: LeaderTerm, signal: AbortSignal): Promise<never> {
  const { config, informers, cloudObserver, memory, staticEnis, subnets, metrics } = term;
  /** Nodes that the sweep found different from the cloud. */
  let drifted = 0;
  const deps = {
    ...term,
    // A static ENI may be on no node, and in no NodeENIConfig.
    others: () => [...informers.vpcEnis.values()].map(({ object }) => object),
    isSynced: () => Object.values(informers).every(({ isSynced }) => isSynced),
    loadSubnets: (enis: readonly Eni[], context: CallContext) => cloudObserver.loadSubnets(enis, context),
    staticNodeOf: (eniId: string) => staticEnis.find(eniId)?.nodeName,
    convertEni: (eni: Eni) => convertEni(term, eni),
    requestRepair: (name: string) => {
      drifted += 1;
      memory.requestDescribe(name, 'the audit found a difference');
      term.enqueueNode(name);
    },
  };
  return await runSweep(sweptEnis(deps), deps, signal, {
    isWanted: () =>
      !config.allocateNodeCidrs || hasEniSubnets(config, subnets) || informers.necs.size + informers.vpcEnis.size > 0,
    onSwept: (swept, tookMs) => {
      countSweep(metrics, swept, drifted, tookMs);
      drifted = 0;
    },
  });
}

/**
 * Converts an ENI as the reconcile of its node does. Its node is the one that created it, else the one of its instance,
 * else the one in its tag.
 */
function convertEni({ necs, cloudObserver, staticEnis }: LeaderTerm, eni: Eni): ObservedEni {
  const attached = eni.attachment === undefined ? [] : necs.byIndex(BY_INSTANCE, eni.attachment.instanceId);
  const tagged = necs.get(eni.tags[ENI_TAG.node] ?? '');
  const isCreator = tagged !== undefined && tagged.object.metadata.uid === eni.tags[ENI_TAG.uid];
  // The VpcENI decides about a static ENI: its tags always name the node that created it.
  const { nodeName } = staticEnis.find(eni.eniId) ?? {};
  const owner = nodeName === undefined ? (isCreator ? tagged : (attached[0] ?? tagged)) : necs.get(nodeName);
  const { uid = '', name = '' } = owner?.object.metadata ?? {};
  const isOthers = (_tags: Tags, eniId: string) =>
    (staticEnis.find(eniId)?.nodeName ?? name) !== name || staticEnis.find(eniId)?.isAttachable === true;
  return cloudObserver.convertKnownEni(eni, { uid, instanceId: owner?.decoded?.status?.instanceID, isOthers });
}
