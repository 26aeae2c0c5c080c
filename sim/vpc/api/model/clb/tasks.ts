import type { DescribeTaskStatusResponse } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import type { CloudState } from '../state.ts';
import type { ModelTask } from '../types.ts';
import type { ClbEffect, ModelLoadBalancer } from './types.ts';

const STATUS = { SUCCESS: 0, FAILED: 1, RUNNING: 2 } as const;

/** Accepts a change of a load balancer: until it is done, no other change is taken and no describe shows it. */
export function changeLater(
  { state, begin }: ModelCall,
  balancer: ModelLoadBalancer,
  change: (balancer: ModelLoadBalancer) => ModelLoadBalancer,
): void {
  state.clb.put({ ...balancer, isOperating: true }, state.nowMs);
  begin({ kind: 'clb', action: 'change', loadBalancerIds: [balancer.loadBalancerId], change });
}

/** Has a task its effect, or undoes what it began. */
export function finishClbTask(state: CloudState, effect: ClbEffect, isGood: boolean): void {
  for (const loadBalancerId of effect.loadBalancerIds) {
    const balancer = state.clb.balancers().get(loadBalancerId);
    if (balancer === undefined) continue;
    const isGone = effect.action === 'create' ? !isGood : effect.action === 'delete' && isGood;
    if (isGone) {
      state.clb.remove(loadBalancerId, state.nowMs);
      if (balancer.subnetId !== undefined) state.subnet(balancer.subnetId).pool.give(balancer.vip);
      continue;
    }
    const changed = isGood && effect.change !== undefined ? effect.change(balancer) : balancer;
    state.clb.put({ ...changed, state: 'NORMAL', isOperating: false }, state.nowMs);
  }
}

/** Answers DescribeTaskStatus. The RequestId of a call that needs no task is unknown here. */
export function describeTaskStatus({ state, params }: ModelCall): Partial<DescribeTaskStatusResponse> {
  const task = findTask(state, params.text('TaskId'), params.text('DealName'));
  const ids = task.effect.kind === 'clb' ? [...task.effect.loadBalancerIds] : [];
  const isOfCreation = task.effect.kind === 'clb' && task.effect.action === 'create';
  return {
    Status: STATUS[task.status],
    // The ids of what is being created come with the end of the task.
    ...(isOfCreation && task.status !== 'SUCCESS' ? {} : { LoadBalancerIds: ids }),
    Message: task.status === 'FAILED' ? 'internal resource scheduling failed' : '',
  };
}

function findTask(state: CloudState, taskId: string, dealName: string): ModelTask {
  if (taskId === '' && dealName === '') {
    throw new ApiError('MissingParameter', 'One of the parameters TaskId and DealName is needed.');
  }
  const found =
    taskId === ''
      ? [...state.tasks.values()].find(({ effect }) => effect.kind === 'clb' && effect.dealName === dealName)
      : state.tasks.get(taskId);
  if (found === undefined) throw new ApiError('ResourceNotFound', 'The task does not exist.');
  return found;
}
