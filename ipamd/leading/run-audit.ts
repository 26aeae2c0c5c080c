import type { CallContext, Eni, Tags } from '../../cloud/cloud.ts';
import { ENI_TAG } from '../../crd/cloud-tags.ts';
import { runSweep } from '../audit/run-sweep.ts';
import { sweptEnis } from '../audit/sweep-enis.ts';
import type { ObservedEni } from '../decide/decision.ts';
import type { StaticEniIndex } from '../direct/static-eni-index.ts';
import { hasEniSubnets } from './has-eni-subnets.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';
import { BY_INSTANCE } from './open-informers.ts';

/** Compares all nodes and ENIs of the cluster until aborted. Rejects only with a fault of ipamd. */
export async function runAudit(leading: LeaderDeps, components: TermComponents, signal: AbortSignal): Promise<void> {
  const { config, informers, definitions, cloudObserver } = leading;
  const { memory, queues, instanceIds, staticEniIndex, subnets } = components;
  /** Nodes that the sweep found different from the cloud. */
  let drifted = 0;
  const deps = {
    ...leading.runtime,
    events: leading.events,
    settings: config,
    isRebuilding: () => definitions.isRebuilding,
    necs: informers.necs,
    // A static ENI may be on no node, and in no NodeENIConfig.
    others: () => [...informers.vpcEnis.values()].map(({ object }) => object),
    instanceIds,
    isSynced: () => Object.values(informers).every(({ isSynced }) => isSynced),
    loadSubnets: (enis: readonly Eni[], context: CallContext) => cloudObserver.loadSubnets(enis, context),
    staticNodeOf: (eniId: string) => staticEniIndex.find(eniId)?.nodeName,
    convertEni: (eni: Eni) => convertEni(leading, staticEniIndex, eni),
    requestRepair: (name: string) => {
      drifted += 1;
      memory.requestDescribe(name, 'the audit found a difference');
      queues.supply.add(name);
    },
  };
  await runSweep(sweptEnis(deps), deps, signal, {
    isWanted: () =>
      !config.allocateNodeCidrs || hasEniSubnets(config, subnets) || informers.necs.size + informers.vpcEnis.size > 0,
    onSwept: (swept, tookMs) => {
      deps.metrics.audit.onAudit(swept, drifted, tookMs);
      drifted = 0;
    },
  }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/**
 * Converts an ENI as the reconcile of its node does. Its node is the one that created it, else the one of its instance,
 * else the one in its tag.
 */
function convertEni(
  { informers: { necs }, cloudObserver }: LeaderDeps,
  staticEniIndex: StaticEniIndex,
  eni: Eni,
): ObservedEni {
  const attached = eni.attachment === undefined ? [] : necs.byIndex(BY_INSTANCE, eni.attachment.instanceId);
  const tagged = necs.get(eni.tags[ENI_TAG.node] ?? '');
  const isCreator = tagged !== undefined && tagged.object.metadata.uid === eni.tags[ENI_TAG.uid];
  // The VpcENI decides about a static ENI: its tags always name the node that created it.
  const { nodeName } = staticEniIndex.find(eni.eniId) ?? {};
  const owner = nodeName === undefined ? (isCreator ? tagged : (attached[0] ?? tagged)) : necs.get(nodeName);
  const { uid = '', name = '' } = owner?.object.metadata ?? {};
  const isOthers = (_tags: Tags, eniId: string) =>
    (staticEniIndex.find(eniId)?.nodeName ?? name) !== name || isFree(staticEniIndex, eniId);
  return cloudObserver.convertKnownEni(eni, { uid, instanceId: owner?.decoded?.status?.instanceID, isOthers });
}

function isFree(staticEniIndex: StaticEniIndex, eniId: string): boolean {
  return staticEniIndex.find(eniId)?.isAttachable === true;
}
