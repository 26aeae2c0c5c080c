import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { ContentStep, LoadBalancerStep } from './load-balancer-step.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { isOfLayer7, type Layer7Step, nameOf, partsOf, type RefusedSteps, type StepRefusal } from './refused-steps.ts';
import type { Refusal, RefusedTargets } from './refused-targets.ts';
import { StepRunner } from './run-step.ts';
import type { UnresolvedCalls } from './unresolved-calls.ts';

const RELEASES = ['delete', 'deleteListeners', 'deleteRewrites'] as const;

type Taking = {
  readonly cloud: ControllerDeps['cloud'];
  readonly calls: UnresolvedCalls;
  readonly refused: RefusedTargets;
  readonly refusedSteps: RefusedSteps;
  /** `namespace/name`. */
  readonly service: string;
  readonly listenerName: string;
};

/**
 * Takes steps on a load balancer that is there, and notes the targets and the steps of layer 7 that the cloud refuses: they
 * keep nothing else from being done. Where another load balancer is to be made, that is left for the next comparison.
 * @returns what was done, for people. @throws CloudError, StepError
 */
export async function takeSteps(
  { cloud, calls, refused, refusedSteps, service, listenerName }: Taking,
  observed: ObservedLoadBalancer,
  steps: readonly LoadBalancerStep[],
  context: CallContext,
): Promise<{
  readonly summary: string;
  readonly areTargets: boolean;
  readonly refusals: readonly (Refusal | StepRefusal)[];
}> {
  const runner = new StepRunner({ cloud, calls }, observed, listenerName);
  const contents = steps.flatMap((step) =>
    step.kind === 'create' || step.kind === 'createSecurityGroup' ? [] : [step],
  );
  const isReplaced = steps.some(({ kind }) => kind === 'create');
  const now = isReplaced ? contents.filter(({ kind }) => RELEASES.some((one) => one === kind)) : contents;
  // What is behind a target that drains is about to end.
  const called: CallContext = now.some(drains) ? { ...context, priority: 'pod' } : context;
  const refusals: (Refusal | StepRefusal)[] = [];
  let lacksPlaces = false;
  for (const step of now) {
    // What was not made has no targets: the next comparison knows.
    if (lacksPlaces && !isOfLayer7(step)) break;
    if (isOfLayer7(step)) {
      const its = await takePartly(runner, step, called);
      refusedSteps.note(service, its);
      refusals.push(...its);
      lacksPlaces ||= its.length > 0 && (step.kind === 'createRules' || step.kind === 'createListeners');
      continue;
    }
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

/** Takes a step of layer 7; where the cloud refuses it, each of its parts. @returns the parts that were refused */
async function takePartly(runner: StepRunner, step: Layer7Step, context: CallContext): Promise<readonly StepRefusal[]> {
  try {
    await runner.run(step, context);
    return [];
  } catch (error) {
    if (!isCloudError(error, 'never', 'quota')) throw error;
    const parts = partsOf(step);
    if (parts.length <= 1) return [{ what: nameOf(step), reason: error.message }];
    const refusals: StepRefusal[] = [];
    for (const part of parts) refusals.push(...(await takePartly(runner, part, context)));
    return refusals;
  }
}

function drains(step: ContentStep): boolean {
  return step.kind === 'setWeights' && step.targets.some(({ weight }) => weight === 0);
}

/** Counts the steps by their kinds, for people. */
function summaryOf(steps: readonly LoadBalancerStep[]): string {
  const counts = Map.groupBy(steps, ({ kind }) => kind);
  return [...counts].map(([kind, all]) => (all.length === 1 ? kind : `${kind} ${all.length} times`)).join(', ');
}
