import type { Eni, Tags } from '../../cloud/cloud.ts';
import { ENI_TAG } from '../../crd/cloud-tags.ts';
import { Audit } from '../audit/audit.ts';
import type { ObservedEni } from '../decide/decision.ts';
import { evaluateDrift } from '../decide/evaluate-drift.ts';
import type { StaticEniIndex } from '../direct/static-eni-index.ts';
import { VPC_ENIS } from '../direct/vpc-eni-reconciler.ts';
import { NODE_ENI_CONFIGS } from '../node-lifecycle/node-eni-configs.ts';
import { hasEniSubnets } from './has-eni-subnets.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';
import { BY_INSTANCE } from './open-informers.ts';

/** Runs the audit of all nodes until aborted. Rejects only with a fault of ipamd. */
export async function runAudit(deps: LeaderDeps, components: TermComponents, signal: AbortSignal): Promise<void> {
  const { config, informers, events } = deps;
  const { cloud, kube, clock, log, metrics } = deps.runtime;
  const { memory, queues, instanceIds, staticEniIndex } = components;
  const audit = new Audit(
    {
      cloud,
      necs: informers.necs,
      // A static ENI may be on no node, and in no NodeENIConfig.
      others: () => [...informers.vpcEnis.values()].map(({ object }) => object),
      instanceIds,
      mayHaveEnis: () =>
        !config.allocateNodeCidrs ||
        hasEniSubnets(config, components.subnets) ||
        informers.necs.size + informers.vpcEnis.size > 0,
      isSynced: () => Object.values(informers).every(({ isSynced }) => isSynced),
      readNec: (name, by) => kube.get(NODE_ENI_CONFIGS, { name }, by),
      readOther: (name, by) => kube.get(VPC_ENIS, { name }, by),
      isRebuilding: () => deps.definitions.isRebuilding,
      loadSubnets: (enis, context) => deps.cloudObserver.loadSubnets(enis, context),
      staticNodeOf: (eniId) => staticEniIndex.find(eniId)?.nodeName,
      convertEni: (eni) => convertEni(deps, staticEniIndex, eni),
      findDrift: evaluateDrift,
      requestRepair: (name) => {
        memory.requestDescribe(name, 'the audit found a difference');
        queues.supply.add(name);
      },
      clock,
      log,
      events,
      observe: metrics.audit,
    },
    {
      clusterId: config.clusterId,
      syncIntervalMs: config.syncIntervalMs,
      orphanGraceMs: config.orphanGraceMs,
      orphanLimit: config.orphanLimit,
      isDryRun: config.orphanDryRun,
      namespace: config.namespace,
    },
  );
  await audit.run(signal).catch((error: unknown) => {
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
