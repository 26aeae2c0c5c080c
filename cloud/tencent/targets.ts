import { batchesOf } from '../batches.ts';
import { classifyError } from '../classify-error.ts';
import type { CallContext } from '../cloud.ts';
import {
  type RefusedTargets,
  TARGETS_PER_CHANGE,
  type TargetPort,
  type TargetRef,
  type TargetSpec,
  type WeightedTarget,
} from '../targets.ts';
import type { Caller } from './caller.ts';
import { decodeAccepted } from './decode/load-balancer.ts';
import { decodeBatch, decodeFoundTargets, decodeTargetHealth, decodeTargets } from './decode/target.ts';
import type { Requests } from './requests.ts';
import { requireCount } from './require-count.ts';

const LISTENERS_PER_CALL = 20;
const LOAD_BALANCERS_PER_HEALTH_CALL = 30;
const ADDRESSES_PER_CALL = 20;
/** Most targets of one rule of a change of weights, and most rules. */
const TARGETS_PER_RULE = 50;
const RULES_PER_CALL = 100;

/** Creates the target part of the port. */
export function createTargetPort(call: Caller): TargetPort {
  return {
    list: async (loadBalancerId, listenerIds, context) => {
      const answers = batchesOf(listenerIds, LISTENERS_PER_CALL).map(async (ids) => {
        const request = { LoadBalancerId: loadBalancerId, ListenerIds: [...ids] };
        return decodeTargets(await call('DescribeTargets', request, context), ids);
      });
      return (await Promise.all(answers)).flat();
    },
    register: async (loadBalancerId, targets, context) => {
      const wire = (target: TargetSpec) => ({ ...targetOf(target), Weight: target.weight, ...tagOf(target) });
      return await changeBatch(call, 'BatchRegisterTargets', loadBalancerId, targets, wire, context);
    },
    deregister: async (loadBalancerId, targets, context) =>
      await changeBatch(call, 'BatchDeregisterTargets', loadBalancerId, targets, targetOf, context),
    setWeights: async (loadBalancerId, targets, context) => {
      const action = 'BatchModifyTargetWeight';
      requireCount(action, 'targets', targets.length, TARGETS_PER_CHANGE);
      const ModifyList = weightRules(targets);
      requireCount(action, 'rules of listeners', ModifyList.length, RULES_PER_CALL);
      return decodeAccepted(await call(action, { LoadBalancerId: loadBalancerId, ModifyList }, context), action);
    },
    health: async (loadBalancerIds, context) => {
      const answers = batchesOf(loadBalancerIds, LOAD_BALANCERS_PER_HEALTH_CALL).map(async (ids) =>
        decodeTargetHealth(await call('DescribeTargetHealth', { LoadBalancerIds: [...ids] }, context), ids),
      );
      return (await Promise.all(answers)).flat();
    },
    findByIps: async (vpcId, ips, context) => {
      const answers = batchesOf(ips, ADDRESSES_PER_CALL).map(async (batch) => {
        const Backends = batch.map((PrivateIp) => ({ VpcId: vpcId, PrivateIp }));
        return decodeFoundTargets(await call('DescribeLBListeners', { Backends }, context));
      });
      return (await Promise.all(answers)).flat();
    },
  };
}

async function changeBatch<T extends TargetRef>(
  call: Caller,
  action: 'BatchRegisterTargets' | 'BatchDeregisterTargets',
  loadBalancerId: string,
  targets: readonly T[],
  wire: (target: T) => BatchTarget,
  context: CallContext,
): Promise<readonly RefusedTargets[]> {
  requireCount(action, 'targets', targets.length, TARGETS_PER_CHANGE);
  const answer = await call(action, { LoadBalancerId: loadBalancerId, Targets: targets.map(wire) }, context);
  const { refusedIds, message } = decodeBatch(answer, action);
  const byListener = Map.groupBy(targets, ({ listenerId }) => listenerId);
  return refusedIds.map((listenerId) => {
    const refused = byListener.get(listenerId);
    if (refused !== undefined) return { listenerId, targets: refused, reason: message };
    // Which of the targets were meant is unknown.
    throw classifyError({ code: 'BAD_ANSWER', action, text: `${listenerId}, which was not asked for, was refused` });
  });
}

type BatchTarget = Requests['BatchRegisterTargets']['Targets'][number];

function targetOf(target: TargetRef): BatchTarget {
  return { ListenerId: target.listenerId, ...locationOf(target), ...backendOf(target) };
}

function tagOf({ tag = '' }: TargetSpec) {
  return tag === '' ? {} : { Tag: tag };
}

function weightRules(targets: readonly WeightedTarget[]) {
  const groups = Map.groupBy(targets, ({ listenerId, ruleId = '' }) => `${listenerId}/${ruleId}`);
  return [...groups.values()].flatMap((group) =>
    batchesOf(group, TARGETS_PER_RULE).map((batch) => ({
      ListenerId: batch[0]?.listenerId ?? '',
      ...locationOf(batch[0] ?? {}),
      Targets: batch.map((target) => ({ ...backendOf(target), Weight: target.weight })),
    })),
  );
}

function locationOf({ ruleId }: Pick<TargetRef, 'ruleId'>) {
  return ruleId === undefined ? {} : { LocationId: ruleId };
}

/** The API takes exactly one of instance and address. */
function backendOf({ ip, port, instanceId }: TargetRef) {
  return { Port: port, ...(instanceId === undefined ? { EniIp: ip } : { InstanceId: instanceId }) };
}
