import { INTENTS } from '../../crd/intent.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { decideClaims } from './decide-claims.ts';
import { decideDirectGrowth, planDirectGrowth } from './decide-direct-growth.ts';
import { decideDirectMarks } from './decide-direct-marks.ts';
import { decideDirectRelease } from './decide-direct-release.ts';
import { decideDraining } from './decide-draining.ts';
import { decideGrowth } from './decide-growth.ts';
import { decideRelease } from './decide-release.ts';
import { decideRemoval } from './decide-removal.ts';
import { decideSecurityGroups } from './decide-security-groups.ts';
import type { Decision, Ids, Leader } from './decision.ts';
import { withDirectReady, withReady, withRefusal } from './judge-ready.ts';
import type { NodeView } from './node-view.ts';
import { isSameData } from './same-data.ts';
import { CALL_UNDER_WAY, type Hold, type Scene, type Step, sceneOf } from './scene.ts';
import { withClaims } from './with-claims.ts';

/**
 * Decides the next step of one node. The same view and ids give the same decision.
 * More addresses come before fewer, because Pods wait for them. A call for one ENI never waits for a call of another
 * ENI, except creations, attachments and detachments: an instance accepts one of these at a time.
 */
export function decideNode(view: NodeView, leader: Leader, ids: Ids): Decision {
  const { spec, status, leaving } = view;
  const seen = spec.observedSupplyEpoch ?? 0;
  if (seen > (status.supplyEpoch ?? 0)) {
    return {
      kind: 'describe',
      why: `the agent has seen supply epoch ${seen}, the object says ${status.supplyEpoch ?? 0}`,
    };
  }
  const intents = status.intents ?? [];
  if (leaving !== 'no' && (status.eniInfos ?? []).length === 0 && intents.length === 0) return { kind: 'released' };
  const marked = withClaims(view, decideDirectMarks(view, decideDraining(view, withInstance(view))));
  const scene = sceneOf(view, marked, leader, ids);
  const growth = decideGrowth(scene);
  const growthHold = growth?.kind === 'hold' ? growth : undefined;
  const { step, holds } = firstBegin(growth, scene);
  const direct = planDirectGrowth(scene);
  const refusal = holds.find((hold) => hold !== growthHold && hold.reason === 'CloudRefused');
  if (step !== undefined && intents.length < INTENTS.maxItems) {
    const shared = withReady(step.status, view, scene.supply, growthHold, ids);
    const begun = withDirectReady(shared, view, direct.holds, ids);
    return { ...step, status: withRefusal(begun, refusal, false, ids) };
  }
  const ready = withDirectReady(withReady(marked, view, scene.supply, growthHold, ids), view, direct.holds, ids);
  const next = withRefusal(ready, refusal, intents.length === 0, ids);
  if (!isSameData(next, status)) return { kind: 'write', status: next };
  return holdOf(holds, intents.length > 0) ?? { kind: 'idle' };
}

type Begin = Extract<Step, { readonly kind: 'begin' }>;

function firstBegin(growth: Step, scene: Scene): { readonly step?: Begin; readonly holds: readonly Hold[] } {
  const holds: Hold[] = [];
  const parts = [
    claimStep,
    () => growth,
    decideDirectGrowth,
    decideRemoval,
    decideDirectRelease,
    decideRelease,
    decideSecurityGroups,
  ];
  for (const decide of parts) {
    const step = decide(scene);
    if (step?.kind === 'begin') return { step, holds };
    if (step !== undefined) holds.push(step);
  }
  return { holds };
}

function claimStep(scene: Scene): Step {
  return decideClaims(scene).step;
}

/** Returns the first block, which has the most important reason, with the shortest time to the next check. */
function holdOf(holds: readonly Hold[], hasIntents: boolean): Hold | undefined {
  const first = holds.find(({ reason }) => reason !== 'CallUnderWay' && reason !== 'ClaimWaits') ?? holds[0];
  if (first === undefined) return hasIntents ? CALL_UNDER_WAY : undefined;
  return { ...first, afterMs: Math.min(...holds.map((hold) => hold.afterMs)) };
}

/** Writes the instance into the status, for people and for the calls of a later leader. */
function withInstance({ status, instance }: NodeView): NodeEniConfigStatus {
  if (instance === undefined) return status;
  const { instanceId: instanceID, instanceType, zone, vpcId: vpcID } = instance;
  const next = { ...status, instanceID, instanceType, zone, vpcID };
  return isSameData(next, status) ? status : next;
}
