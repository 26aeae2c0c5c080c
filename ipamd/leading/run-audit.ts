import type { Eni } from '../../cloud/cloud.ts';
import { Audit } from '../audit/audit.ts';
import { ENI_TAG } from '../audit/find-orphans.ts';
import type { SeenEni } from '../nec/decision.ts';
import { findDrift } from '../nec/find-drift.ts';
import { NODE_ENI_CONFIGS } from '../nodes/node-eni-configs.ts';
import { BY_INSTANCE } from '../open-informers.ts';
import type { LeadDeps, TermParts } from './lead.ts';

/** Compares all nodes with the cloud once in a while until aborted. Never rejects but with a fault of ours. */
export async function runAudit(deps: LeadDeps, parts: TermParts, signal: AbortSignal): Promise<void> {
  const { config, informers, events } = deps;
  const { cloud, kube, clock, log, metrics } = deps.runtime;
  const { memory, queues, instanceIds } = parts;
  const audit = new Audit(
    {
      cloud,
      necs: informers.necs,
      instanceIds,
      isSynced: () => Object.values(informers).every(({ isSynced }) => isSynced),
      readNec: (name, by) => kube.get(NODE_ENI_CONFIGS, { name }, by),
      learn: (enis, context) => deps.eyes.learn(enis, context),
      see: (eni) => see(deps, eni),
      findDrift,
      suspect: (name) => {
        memory.askDescribe(name, 'the audit found a difference');
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

/** An ENI as the node sees it that it would be of: that made it, else by its instance, else by the name in its tag. */
function see({ informers: { necs }, eyes }: LeadDeps, eni: Eni): SeenEni {
  const onIt = eni.attachment === undefined ? [] : necs.byIndex(BY_INSTANCE, eni.attachment.instanceId);
  const tagged = necs.get(eni.tags[ENI_TAG.node] ?? '');
  const hasMadeIt = tagged !== undefined && tagged.object.metadata.uid === eni.tags[ENI_TAG.uid];
  const owner = hasMadeIt ? tagged : (onIt[0] ?? tagged);
  const { uid = '' } = owner?.object.metadata ?? {};
  return eyes.seeNow(eni, { uid, instanceId: owner?.decoded?.status?.instanceID });
}
