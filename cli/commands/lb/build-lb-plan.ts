import { listenerNameOf } from '../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { releaseSteps } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import type { Notice } from '../../../cloud-controller-manager/balancers/notice.ts';
import { decideService } from '../../../cloud-controller-manager/services/decide-service.ts';
import { planLoadBalancer } from '../../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readServiceHead, readServiceSpec } from '../../../cloud-controller-manager/services/read-service.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { comparePlan, type PlanTerms } from './compare-plan.ts';
import { describeStep, type PlanStep } from './describe-step.ts';
import { findBackends, findPods } from './find-backends.ts';
import { findConfig } from './find-config.ts';
import { findObservedService } from './find-observed.ts';
import type { LbFacts } from './lb-facts.ts';

/** What the controller would do for a Service. */
export type LbPlan = {
  readonly service: string;
  readonly steps: readonly PlanStep[];
  /** What it would report; one that blocks keeps everything as it is. */
  readonly notices: readonly { readonly reason: string; readonly message: string; readonly blocks: boolean }[];
};

/** Plans what the controller would do for each Service that it serves. Those without a step are listed too. */
export function buildLbPlans(facts: LbFacts, terms: PlanTerms): readonly LbPlan[] {
  const podsOf = findPods(facts);
  const plans = facts.services.flatMap((object) => planOne(object, facts, podsOf, terms));
  return plans.toSorted((one, other) => compareTexts(one.service, other.service));
}

type PodsOf = ReturnType<typeof findPods>;

function planOne(object: KubeObject, facts: LbFacts, podsOf: PodsOf, terms: PlanTerms): readonly LbPlan[] {
  const head = readServiceHead(object);
  const { key: service } = head;
  const role = decideService(head, facts.loadBalancerClass);
  if (role === 'ignore') return [];
  const { settings, notices, areTargetsKnown } = readAnnotations(head.annotations, head.labels);
  const observed = findObservedService(object, terms.clusterId, terms.cloud, ifKnown(facts.groups));
  if (settings.mode === 'skip' || (role === 'serve' && !areTargetsKnown)) return [{ service, steps: [], notices }];
  if (observed?.balancer.isNormal === false) return [{ service, steps: [], notices }];
  if (role === 'release') {
    const steps = observed === undefined ? [] : releaseSteps(observed.listenerName, observed);
    return [{ service, steps: steps.map((step) => describeStep(step, observed)), notices: [] }];
  }
  const planned = planDesired(object, facts, podsOf, terms);
  const plan = { ...planned, notices: [...notices, ...planned.notices] };
  const listenerName = listenerNameOf(terms.clusterId, head.uid, 'service');
  const compared = comparePlan({ kind: 'service', listenerName, plan, observed }, terms);
  return [{ service, steps: compared.steps.map((step) => describeStep(step, observed)), notices: compared.notices }];
}

function planDesired(
  object: KubeObject,
  facts: LbFacts,
  podsOf: PodsOf,
  { cloud, clusterId, vpcId }: PlanTerms,
): Pick<ReturnType<typeof planLoadBalancer>, 'notices'> & Partial<ReturnType<typeof planLoadBalancer>> {
  const head = readServiceHead(object);
  const { settings } = readAnnotations(head.annotations, head.labels);
  const { maxTargets } = cloud;
  const configured = findConfig({ ...head, ...settings }, facts.configs);
  try {
    const plan = planLoadBalancer({
      ...{ service: head, settings, clusterId, vpcId },
      spec: readServiceSpec(object),
      nodes: findBackends(facts, vpcId),
      ...(settings.directAccess === true ? { pods: podsOf(head.key) } : {}),
      ...(configured.kind === 'unknown' ? { config: configured.kind } : {}),
      ...(configured.kind === 'known' && configured.config !== undefined ? { config: configured.config } : {}),
      ...(maxTargets === undefined ? {} : { maxTargets }),
    });
    if (configured.kind === 'known') return plan;
    const message = `${configured.why}. Listeners keep the settings that they have`;
    const notice: Notice = { reason: 'ServiceConfigUnused', message, blocks: false };
    return { ...plan, notices: [...plan.notices, notice] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const notice: Notice = { reason: 'ServiceInvalid', message: error.message, blocks: true };
    return { notices: [notice] };
  }
}
