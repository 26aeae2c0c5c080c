import type { CallContext, Eni } from '../../cloud/cloud.ts';
import { countSweep } from '../audit/count-sweep.ts';
import { runSweep } from '../audit/run-sweep.ts';
import { sweptEnis } from '../audit/sweep-enis.ts';
import { isStaticElsewhere } from '../calls/repair-status.ts';
import type { ObservedEni } from '../decide/decision.ts';
import { hasEniSubnets } from '../subnets/has-eni-subnets.ts';
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
    findStatic: (eniId: string) => staticEnis.find(eniId),
    convertEni: (eni: Eni, nodeName: string) => convertEni(term, eni, nodeName),
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

/** Converts an ENI as the reconcile of its node does. */
function convertEni(term: LeaderTerm, eni: Eni, nodeName: string): ObservedEni {
  const { object, decoded } = term.necs.get(nodeName) ?? {};
  const node = { name: nodeName, status: decoded?.status ?? {} };
  return term.cloudObserver.convertKnownEni(eni, {
    uid: object?.metadata.uid ?? '',
    instanceId: node.status.instanceID,
    isOthers: (one) => isStaticElsewhere(term, node, one) === true,
  });
}
