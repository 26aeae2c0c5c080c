import type { CallContext, Eni } from '../../cloud/cloud.ts';
import type { NodeMemories } from '../calls/node-memory.ts';
import { isStaticElsewhere } from '../calls/repair-status.ts';
import type { Term } from '../calls/term.ts';
import type { ObservedEni } from '../decide/decision.ts';
import type { StaticEniIndex } from '../exclusive/static-eni-index.ts';
import { hasEniSubnets } from '../subnets/has-eni-subnets.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import { countSweep } from './count-sweep.ts';
import { type Sweep, sweepOf } from './run-sweep.ts';
import { sweptEnis } from './sweep-enis.ts';

/** What the sweep of ENIs works with. */
type AuditTerm = Term & {
  readonly instanceIds: () => Iterable<string>;
  readonly memory: NodeMemories;
  readonly staticEnis: StaticEniIndex;
  readonly subnets: Subnets;
};

/** Makes the sweep that compares all nodes and ENIs of the cluster. */
export function eniSweep(term: AuditTerm): Sweep {
  const { config, cloudObserver, memory, staticEnis, subnets, metrics, necs, nodes, pods, vpcEnis, configMaps } = term;
  /** Nodes that the sweep found different from the cloud. */
  let drifted = 0;
  const swept = sweptEnis({
    ...term,
    // A static ENI may be on no node, and in no NodeENIConfig.
    others: () => [...vpcEnis.values()].map(({ object }) => object),
    isSynced: () => [necs, nodes, pods, vpcEnis, configMaps].every(({ isSynced }) => isSynced),
    loadSubnets: (enis: readonly Eni[], context: CallContext) => cloudObserver.loadSubnets(enis, context),
    findStatic: (eniId: string) => staticEnis.find(eniId),
    convertEni: (eni: Eni, nodeName: string) => convertEni(term, eni, nodeName),
    requestRepair: (name: string) => {
      drifted += 1;
      memory.requestDescribe(name, 'the audit found a difference');
      term.enqueueNode(name);
    },
  });
  return sweepOf(swept, {
    isWanted: () => !config.allocateNodeCidrs || hasEniSubnets(config, subnets) || necs.size + vpcEnis.size > 0,
    onSwept: (result, tookMs) => {
      countSweep(metrics, result, drifted, tookMs);
      drifted = 0;
    },
  });
}

/** Converts an ENI as the reconcile of its node does. */
function convertEni(term: AuditTerm, eni: Eni, nodeName: string): ObservedEni {
  const { object, decoded } = term.necs.get(nodeName) ?? {};
  const node = { name: nodeName, status: decoded?.status ?? {} };
  return term.cloudObserver.convertKnownEni(eni, {
    uid: object?.metadata.uid ?? '',
    instanceId: node.status.instanceID,
    isOthers: (one) => isStaticElsewhere(term, node, one) === true,
  });
}
