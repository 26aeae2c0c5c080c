import type { Clock } from '../../runtime/clock.ts';
import { batchesOf } from '../batches.ts';
import type { CallContext } from '../cloud.ts';
import { isCloudError } from '../cloud-error.ts';
import type { LoadBalancerOutcome, LoadBalancerPort, LoadBalancerSpec } from '../load-balancers.ts';
import { type Caller, DEFAULT_TIMEOUT_MS } from './caller.ts';
import { decodeLoadBalancers, decodeLoadBalancerTask } from './decode/load-balancer.ts';
import { decodeRequestId } from './decode/others.ts';
import { tokenOf } from './enis.ts';

/** Most ids in one describe call of this product. */
const IDS_PER_CALL = 20;
/** Interval of the polls of one task. All polls together may take 20 calls a second. */
const POLL_INTERVAL_MS = 1_000;
/** How many times the cloud must not know a task before it counts as lost. */
const UNKNOWN_ANSWERS = 3;

/** Creates the load balancer part of the port. */
export function createLoadBalancerPort(clock: Clock, call: Caller): LoadBalancerPort {
  return {
    create: async (spec, context) => {
      const action = 'CreateLoadBalancer';
      return { taskId: decodeRequestId(await call(action, createRequest(spec), context), action), action };
    },
    describe: async (loadBalancerIds, context) => {
      const batches = batchesOf(loadBalancerIds, IDS_PER_CALL);
      const answers = batches.map((ids) =>
        call('DescribeLoadBalancers', { LoadBalancerIds: [...ids], Limit: IDS_PER_CALL }, context),
      );
      return (await Promise.all(answers)).flatMap(decodeLoadBalancers);
    },
    delete: async (loadBalancerId, context) => {
      const action = 'DeleteLoadBalancer';
      const answer = await call(action, { LoadBalancerIds: [loadBalancerId] }, context);
      return { taskId: decodeRequestId(answer, action), action };
    },
    settle: async ({ taskId }, context) => {
      const endMs = clock.monotonicMs() + (context.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      let unknownAnswers = 0;
      while (clock.monotonicMs() < endMs) {
        await clock.sleep(Math.max(1, Math.min(POLL_INTERVAL_MS, endMs - clock.monotonicMs())), context.signal);
        const timeoutMs = Math.max(1, endMs - clock.monotonicMs());
        const answer = await queryTask(call, taskId, { ...context, timeoutMs });
        unknownAnswers = answer.kind === 'lost' ? unknownAnswers + 1 : 0;
        if (answer.kind === 'done' || answer.kind === 'failed' || unknownAnswers >= UNKNOWN_ANSWERS) return answer;
      }
      return { kind: 'pending' };
    },
  };
}

async function queryTask(call: Caller, taskId: string, context: CallContext): Promise<LoadBalancerOutcome> {
  try {
    return decodeLoadBalancerTask(await call('DescribeTaskStatus', { TaskId: taskId }, context));
  } catch (error) {
    if (isCloudError(error, 'gone')) return { kind: 'lost' };
    if (isCloudError(error, 'backoff', 'throttled', 'resolve', 'busy')) return { kind: 'pending' };
    throw error;
  }
}

function createRequest({ type, name, vpcId, subnetId, tags, clientToken }: LoadBalancerSpec) {
  return {
    LoadBalancerType: type,
    LoadBalancerName: name,
    VpcId: vpcId,
    ...(subnetId === undefined ? {} : { SubnetId: subnetId }),
    ...(tags === undefined ? {} : { Tags: Object.entries(tags).map(([TagKey, TagValue]) => ({ TagKey, TagValue })) }),
    ...tokenOf(clientToken),
  };
}
