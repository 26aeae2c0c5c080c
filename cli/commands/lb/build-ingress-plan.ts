import { groupListenerNameOf, listenerNameOf } from '../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { desiredListenersOf } from '../../../cloud-controller-manager/balancers/desired-places.ts';
import { releaseSteps, retainSteps } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import type { LoadBalancerStep } from '../../../cloud-controller-manager/balancers/load-balancer-step.ts';
import { blocking, type Notice } from '../../../cloud-controller-manager/balancers/notice.ts';
import type { OwnerPlan } from '../../../cloud-controller-manager/balancers/owner-plan.ts';
import { decideIngress } from '../../../cloud-controller-manager/ingresses/decide-ingress.ts';
import {
  decideMembership,
  groupOf,
  isJoined,
  unitKeysOf,
} from '../../../cloud-controller-manager/ingresses/decide-membership.ts';
import { GroupClaims } from '../../../cloud-controller-manager/ingresses/group-claims.ts';
import { noticeOfUnknown, planGroup, planOf } from '../../../cloud-controller-manager/ingresses/plan-group.ts';
import { type IngressPlan, planIngress, withConfig } from '../../../cloud-controller-manager/ingresses/plan-ingress.ts';
import { MAX_RULES, planUnit } from '../../../cloud-controller-manager/ingresses/plan-unit.ts';
import { readAnnotations } from '../../../cloud-controller-manager/ingresses/read-annotations.ts';
import {
  type IngressHead,
  readIngressHead,
  readIngressSpec,
} from '../../../cloud-controller-manager/ingresses/read-ingress.ts';
import type { RuleClaim } from '../../../cloud-controller-manager/ingresses/resolve-clashes.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import type { LbPlan } from './build-lb-plan.ts';
import { comparePlan, type PlanTerms } from './compare-plan.ts';
import { describeStep, type PlanStep } from './describe-step.ts';
import { findBackends, findPods } from './find-backends.ts';
import { findConfig } from './find-config.ts';
import { findObserved, type ObservedBalancer } from './find-observed.ts';
import type { IngressFacts, LbFacts } from './lb-facts.ts';
import { SecretCertificates } from './secret-certificates.ts';

/** What the controller would do for an Ingress, or for some that share the listeners of a load balancer. */
export type IngressLbPlan = {
  /** `NAMESPACE/NAME` each, the older ones first. */
  readonly ingresses: readonly string[];
  readonly steps: readonly PlanStep[];
  /** As those of Services. Where there are several Ingresses, a message begins with the one that it is about. */
  readonly notices: LbPlan['notices'];
  /** Secrets, `NAMESPACE/NAME` each: whether their certificates are in force is not known, as they are not read. */
  readonly secrets: readonly string[];
};

type PlanContext = {
  readonly facts: LbFacts;
  readonly terms: PlanTerms;
  readonly ingresses: IngressFacts;
  readonly podsOf: ReturnType<typeof findPods>;
  readonly secrets: SecretCertificates;
};

type Member = { readonly object: KubeObject; readonly head: IngressHead };

/** Plans what the controller would do for each Ingress that it serves, or group of them. Those without a step are listed too. */
export function buildIngressPlans(facts: LbFacts, terms: PlanTerms): readonly IngressLbPlan[] {
  const ingresses = facts.ingresses === undefined ? undefined : ifKnown(facts.ingresses);
  if (ingresses === undefined) return [];
  const context = { facts, terms, ingresses, podsOf: findPods(facts), secrets: new SecretCertificates() };
  const members = ingresses.ingresses.map((object) => ({ object, head: readIngressHead(object) }));
  const byUnit = Map.groupBy(
    members.flatMap((member) => unitKeysOf(member.head).map((unit) => ({ unit, member }))),
    ({ unit }) => unit,
  );
  const plans = [...byUnit].flatMap(([unit, its]) => {
    const group = groupOf(unit);
    const all = its.map(({ member }) => member);
    return group === undefined ? all.flatMap((one) => planSingle(one, context)) : planShared(all, group, context);
  });
  return plans.toSorted((one, other) => compareTexts(one.ingresses[0] ?? '', other.ingresses[0] ?? ''));
}

function planSingle({ object, head }: Member, context: PlanContext): readonly IngressLbPlan[] {
  const { terms, facts, secrets } = context;
  const { role, notice } = roleOf(head, context);
  // Its group ends that first.
  if (isJoined(head)) return [];
  const noted = (notices: readonly Notice[]): IngressLbPlan => ({
    ingresses: [head.key],
    steps: [],
    notices,
    secrets: [],
  });
  if (role === 'ignore') return notice === undefined ? [] : [noted([notice])];
  const { settings, notices: ofAnnotations } = readAnnotations(head.annotations);
  const listenerName = listenerNameOf(terms.clusterId, head.uid, 'ingress');
  const { existedLbId } = settings;
  const owner = { head, listenerName, ...(existedLbId === undefined ? {} : { namedId: existedLbId }) };
  const observed = findObserved(owner, terms.clusterId, terms.cloud, ifKnown(facts.groups));
  if (settings.mode === 'skip' || observed?.balancer.isNormal === false) return [noted(ofAnnotations)];
  if (role === 'release') {
    if (observed === undefined) return [noted([])];
    const release = settings.retain === true ? retainSteps : releaseSteps;
    return [{ ...noted([]), steps: described(release(listenerName, observed), observed, secrets) }];
  }
  const plan = planMember(object, head, context);
  const { maxRules } = terms.cloud;
  const most = maxRules === undefined ? {} : { maxRules };
  const owned = planUnit({ plan, head, settings, ids: new Map(), listenerName, ...most });
  const notices = [...ofAnnotations, ...plan.notices, ...owned.notices];
  const wanted = desiredListenersOf({ listeners: [], ruleListeners: owned.ruleListeners ?? [] });
  const claimed = findObserved({ ...owner, wanted }, terms.clusterId, terms.cloud, ifKnown(facts.groups));
  return [render([head.key], { ...owned, notices }, listenerName, claimed, context)];
}

function planShared(
  members: readonly Member[],
  loadBalancerId: string,
  context: PlanContext,
): readonly IngressLbPlan[] {
  const { terms, facts, secrets } = context;
  const roles = members.map((member) => ({
    member,
    is: decideMembership(member.head, roleOf(member.head, context).role, loadBalancerId),
  }));
  const serving = roles.filter(({ is }) => is === 'serving' || is === 'asIs').map(({ member }) => member);
  const leaving = roles.filter(({ is }) => is === 'leaving').map(({ member }) => member);
  // Its rules stay, and are not known here.
  const hasLeft = roles.some(({ is }) => is === 'left');
  const [first] = [...serving, ...leaving];
  if (first === undefined) return [];
  const listenerName = groupListenerNameOf(terms.clusterId, loadBalancerId);
  const observed = findObserved(
    { head: first.head, listenerName, namedId: loadBalancerId },
    terms.clusterId,
    terms.cloud,
    ifKnown(facts.groups),
  );
  const keys = (some: readonly Member[]): readonly string[] => some.toSorted(compareAges).map(({ head }) => head.key);
  if (serving.length === 0) {
    const steps =
      observed === undefined || hasLeft ? [] : described(releaseSteps(listenerName, observed), observed, secrets);
    return [{ ingresses: keys(leaving), steps, notices: [], secrets: [] }];
  }
  const planned = serving.toSorted(compareAges).map(({ object, head }) => {
    const { settings, notices } = readAnnotations(head.annotations);
    const plan = planMember(object, head, context);
    const isReadable = plan.desired !== undefined && settings.mode !== 'skip' && !notices.some(({ blocks }) => blocks);
    return { head, plan, notices: [...notices, ...plan.notices], isReadable };
  });
  // One that cannot be read, or has mode skip, keeps its rules, which are not known here.
  const isUnknown = ({ head, isReadable }: (typeof planned)[number]): boolean => !isReadable && isJoined(head);
  const claims = planned.flatMap((one): readonly RuleClaim[] => {
    const { listeners: its } = one.plan;
    if (its === undefined || !(one.isReadable || isUnknown(one))) return [];
    return [{ ingress: one.head, isGrouped: true, listeners: its, ...(one.isReadable ? {} : { role: 'passive' }) }];
  });
  const ofLeaving = leaving.map(({ object, head }) =>
    GroupClaims.leaving(head, planMember(object, head, context).listeners ?? []),
  );
  // Those that go come last: the others get what they get without them.
  const { listeners, keysOf, noticesOf, refused } = planGroup(
    [...claims, ...ofLeaving],
    terms.cloud.maxRules ?? MAX_RULES,
  );
  const hasUnknown = hasLeft || planned.some((one) => isUnknown(one) || refused.has(one.head.uid));
  const notices = planned.flatMap((one) => {
    const { head, notices: its } = one;
    const unknown = isUnknown(one) ? [noticeOfUnknown(loadBalancerId)] : [];
    return [...its, ...unknown, ...(noticesOf.get(head.uid) ?? [])].map(prefixed(head));
  });
  const plan = planOf(planned, listeners);
  const source = { kind: 'existing' as const, loadBalancerId };
  const onlyLeaving = leaving.flatMap(({ head }) => keysOf.get(head.uid) ?? []);
  const desired = {
    ...{ source, listenerName, listeners: [], ruleListeners: listeners, allowsAddressChange: false },
    ...(hasUnknown ? { onlyLeaving } : {}),
  };
  // What one of them asks for in vain stops no other.
  const open = notices.map((one) => ({ ...one, blocks: false }));
  return [render(keys(serving), { ...plan, desired, notices: open }, listenerName, observed, context)];
}

function render(
  ingresses: readonly string[],
  plan: OwnerPlan,
  listenerName: string,
  observed: ObservedBalancer | undefined,
  { terms, secrets }: PlanContext,
): IngressLbPlan {
  const { desired, ruleListeners } = plan;
  const present = (observed?.listeners ?? []).filter(({ name }) => name === listenerName);
  const known = ruleListeners === undefined ? {} : { ruleListeners: secrets.keepPresent(ruleListeners, present) };
  const compared = comparePlan(
    {
      ...{ kind: 'ingress', listenerName, observed },
      plan: { ...plan, ...known, ...(desired === undefined ? {} : { desired: { ...desired, ...known } }) },
    },
    terms,
  );
  return {
    ingresses,
    steps: described(compared.steps, observed, secrets),
    notices: compared.notices,
    secrets: secrets.usedIn(ruleListeners ?? []),
  };
}

/** Plans one Ingress. What is wrong with it is a notice. */
function planMember(
  object: KubeObject,
  head: IngressHead,
  { facts, terms, ingresses, podsOf, secrets }: PlanContext,
): IngressPlan {
  const { settings } = readAnnotations(head.annotations);
  const { clusterId, vpcId, cloud } = terms;
  try {
    const plan = planIngress({
      ...{ head, settings, clusterId, vpcId },
      spec: readIngressSpec(object),
      secretOf: secrets.secretOf(head.namespace),
      portsOf: (service) => ingresses.ports.get(`${head.namespace}/${service}`) ?? 'missing',
      podsOf: (service) => podsOf(`${head.namespace}/${service}`),
      nodes: findBackends(facts, vpcId),
      ...(cloud.maxTargets === undefined ? {} : { maxTargets: cloud.maxTargets }),
      // No certificate is read that could have expired.
      nowMs: 0,
    });
    return plan.desired === undefined ? plan : withConfig(plan, findConfig({ ...head, ...settings }, facts.configs));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { uploads: new Map(), notices: [blocking('IngressInvalid', error.message)] };
  }
}

function roleOf(head: IngressHead, { ingresses: { controllers, servesWithoutClass } }: PlanContext) {
  return decideIngress(head, { controllerOf: (name) => controllers.get(name), servesWithoutClass });
}

function described(
  steps: readonly LoadBalancerStep[],
  observed: ObservedBalancer | undefined,
  secrets: SecretCertificates,
): readonly PlanStep[] {
  return steps.map((step) => describeStep(step, observed, 'Ingress', (certId) => secrets.nameOf(certId)));
}

function prefixed({ key }: IngressHead): (notice: Notice) => Notice {
  return (notice) => ({ ...notice, message: `${key}: ${notice.message}` });
}

function compareAges({ head: one }: Member, { head: other }: Member): number {
  return compareTexts(one.createdAt, other.createdAt) || compareTexts(one.uid, other.uid);
}
