import type { CallContext } from '../../cloud/cloud.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { ObservedLoadBalancer } from './diff-load-balancer.ts';
import type { ContentStep, LoadBalancerStep } from './load-balancer-step.ts';
import type { Refusal, RefusedTargets } from './refused-targets.ts';
import { StepRunner } from './run-step.ts';

type Taking = {
  readonly cloud: ControllerDeps['cloud'];
  readonly refused: RefusedTargets;
  /** `namespace/name`. */
  readonly service: string;
  readonly listenerName: string;
};

/**
 * Takes steps on a load balancer that is there, and notes the targets that the cloud refuses: they keep nothing else from
 * being done. Where another load balancer is to be made, that is left for the next comparison.
 * @returns what was done, for people. @throws CloudError, StepError
 */
export async function takeSteps(
  { cloud, refused, service, listenerName }: Taking,
  observed: ObservedLoadBalancer,
  steps: readonly LoadBalancerStep[],
  context: CallContext,
): Promise<{ readonly summary: string; readonly areTargets: boolean; readonly refusals: readonly Refusal[] }> {
  const runner = new StepRunner({ cloud }, observed, listenerName);
  const contents = steps.flatMap((step) =>
    step.kind === 'create' || step.kind === 'createSecurityGroup' ? [] : [step],
  );
  const isReplaced = steps.some(({ kind }) => kind === 'create');
  const now = isReplaced ? contents.filter(({ kind }) => kind === 'delete' || kind === 'deleteListeners') : contents;
  // What is behind a target that drains is about to end.
  const called: CallContext = now.some(drains) ? { ...context, priority: 'pod' } : context;
  const refusals: Refusal[] = [];
  for (const step of now) {
    if (step.kind !== 'register') {
      await runner.run(step, called);
      continue;
    }
    const { together, alone } = refused.divide(service, step.targets);
    for (const targets of [together, ...alone.map((target) => [target])]) {
      if (targets.length === 0) continue;
      const its = await runner.register(targets, called);
      refused.note(service, its);
      refusals.push(...its);
    }
  }
  const areTargets = now.every(({ kind }) => kind === 'register' || kind === 'setWeights' || kind === 'deregister');
  return { summary: summaryOf(now), areTargets, refusals };
}

function drains(step: ContentStep): boolean {
  return step.kind === 'setWeights' && step.targets.some(({ weight }) => weight === 0);
}

/** Counts the steps by their kinds, for people. */
function summaryOf(steps: readonly LoadBalancerStep[]): string {
  const counts = Map.groupBy(steps, ({ kind }) => kind);
  return [...counts].map(([kind, all]) => (all.length === 1 ? kind : `${kind} ${all.length} times`)).join(', ');
}
