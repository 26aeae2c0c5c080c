import type { Target } from '../../../cloud/targets.ts';
import { readCloudNode } from '../../../cloud-controller-manager/nodes/cloud-node.ts';
import { renderRules } from '../../../cloud-controller-manager/services/compare-rules.ts';
import { decideAdoption } from '../../../cloud-controller-manager/services/decide-adoption.ts';
import { decideBackendNode } from '../../../cloud-controller-manager/services/decide-backend-node.ts';
import { decideService } from '../../../cloud-controller-manager/services/decide-service.ts';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/services/desired-load-balancer.ts';
import { diffLoadBalancer, releaseSteps } from '../../../cloud-controller-manager/services/diff-load-balancer.ts';
import { withSourceGroup } from '../../../cloud-controller-manager/services/diff-security-groups.ts';
import type { LoadBalancerStep } from '../../../cloud-controller-manager/services/load-balancer-step.ts';
import type { Notice } from '../../../cloud-controller-manager/services/notice.ts';
import { followTargets, planLoadBalancer } from '../../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readPodNode } from '../../../cloud-controller-manager/services/pod-node.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readServiceHead, readServiceSpec } from '../../../cloud-controller-manager/services/read-service.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { findObserved, type ObservedBalancer } from './find-observed.ts';
import type { LbCloud, LbFacts } from './lb-facts.ts';

/** A call that the controller would make. */
type PlanStep = {
  readonly kind: LoadBalancerStep['kind'];
  /** What it changes: `lb-…`, `TCP/80`, a target each. */
  readonly objects: readonly string[];
  readonly reason: string;
};

/** What the controller would do for a Service. */
export type LbPlan = {
  readonly service: string;
  readonly steps: readonly PlanStep[];
  /** What it would report; one that blocks keeps everything as it is. */
  readonly notices: readonly { readonly reason: string; readonly message: string; readonly blocks: boolean }[];
};

/** What a plan needs beside the facts. */
type PlanTerms = { readonly cloud: LbCloud; readonly clusterId: string; readonly vpcId: string };

/** Plans what the controller would do for each Service that it serves. Those without a step are listed too. */
export function buildLbPlans(facts: LbFacts, terms: PlanTerms): readonly LbPlan[] {
  const plans = facts.services.flatMap((object) => planOne(object, facts, terms));
  return plans.toSorted((one, other) => (one.service < other.service ? -1 : 1));
}

function planOne(object: KubeObject, facts: LbFacts, { cloud, clusterId, vpcId }: PlanTerms): readonly LbPlan[] {
  const head = readServiceHead(object);
  const { key: service } = head;
  const role = decideService(head, facts.loadBalancerClass);
  if (role === 'ignore') return [];
  const observed = findObserved(head, clusterId, cloud, ifKnown(facts.groups));
  const { settings, notices, areTargetsKnown } = readAnnotations(head.annotations, head.labels);
  if (settings.mode === 'skip' || (role === 'serve' && !areTargetsKnown)) return [{ service, steps: [], notices }];
  if (observed?.balancer.isNormal === false) return [{ service, steps: [], notices }];
  if (role === 'release') {
    const steps = observed === undefined ? [] : releaseSteps(observed.listenerName, observed);
    return [{ service, steps: steps.map((step) => describe(step, observed)), notices: [] }];
  }
  const { desired, listeners, notices: ofSpec } = planDesired(object, facts, { cloud, clusterId, vpcId });
  const all = [...notices, ...ofSpec];
  const refusal = desired === undefined ? undefined : adoptionOf(desired, observed, vpcId, clusterId);
  if (refusal !== undefined) return [{ service, steps: [], notices: [...all, refusal] }];
  const compare = (one: DesiredLoadBalancer) => {
    const draining = new Set((observed?.targets ?? []).filter(({ weight }) => weight === 0).map(idOf));
    return diffLoadBalancer(
      withSourceGroup(one, observed),
      observed,
      (target) => draining.has(idOf(target)),
      servingOf(observed),
    );
  };
  const diff = desired === undefined || all.some(({ blocks }) => blocks) ? undefined : compare(desired);
  const asked = [...all, ...(diff?.notices ?? [])];
  const rendered = ({ steps, held }: ReturnType<typeof compare>): readonly LbPlan[] => [
    { service, steps: steps.map((step) => describe(step, observed)), notices: [...asked, ...noticeOfHeld(held)] },
  ];
  if (diff !== undefined && !diff.notices.some(({ blocks }) => blocks)) return rendered(diff);
  if (observed === undefined || listeners === undefined) return [{ service, steps: [], notices: asked }];
  // All else is refused.
  return rendered(compare(followTargets({ clusterId, service: head }, observed.balancer.loadBalancerId, listeners)));
}

function adoptionOf(
  { source }: DesiredLoadBalancer,
  observed: ObservedBalancer | undefined,
  vpcId: string,
  clusterId: string,
): Notice | undefined {
  if (observed === undefined || source.kind !== 'existing') return undefined;
  if (observed.balancer.loadBalancerId !== source.loadBalancerId) return undefined;
  return decideAdoption(observed, vpcId, clusterId);
}

/** Where no target is healthy, each counts as serving: there is nothing to lose. */
function servingOf(observed: ObservedBalancer | undefined): (target: Target) => boolean {
  const healthy = (observed?.health ?? []).filter(({ state }) => state === 'healthy' || state === 'unchecked');
  const ids = new Set(healthy.map(idOf));
  return (target) => ids.size === 0 || ids.has(idOf(target));
}

function noticeOfHeld(held: readonly Target[] = []): readonly Notice[] {
  if (held.length === 0) return [];
  const shown = held.map(({ ip, port }) => `${ip}:${port}`).join(', ');
  const message = `${shown} keep their weight until another target of the listener is healthy`;
  return [{ reason: 'UnAvailableLoadBalancer', message, blocks: false }];
}

function planDesired(
  object: KubeObject,
  facts: LbFacts,
  { cloud, clusterId, vpcId }: PlanTerms,
): Pick<ReturnType<typeof planLoadBalancer>, 'notices'> & Partial<ReturnType<typeof planLoadBalancer>> {
  const head = readServiceHead(object);
  const { settings } = readAnnotations(head.annotations, head.labels);
  const nodes = ifKnown(facts.nodes) ?? [];
  const backends = nodes.flatMap((node) => {
    const role = decideBackendNode(readCloudNode(node), vpcId);
    return role.kind === 'backend' ? [role.backend] : [];
  });
  const { maxTargets } = cloud;
  try {
    return planLoadBalancer({
      service: head,
      spec: readServiceSpec(object),
      settings,
      nodes: backends,
      ...(settings.directAccess === true ? { pods: podFactsOf(head.key, facts) } : {}),
      clusterId,
      vpcId,
      ...(maxTargets === undefined ? {} : { maxTargets }),
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const notice: Notice = { reason: 'ServiceInvalid', message: error.message, blocks: true };
    return { notices: [notice] };
  }
}

function podFactsOf(service: string, { slices, pods, nodes }: LbFacts) {
  const podByKey = new Map((ifKnown(pods) ?? []).map((pod) => [`${pod.namespace}/${pod.name}`, pod]));
  const nodeByName = new Map((ifKnown(nodes) ?? []).map((node) => [node.metadata.name, node]));
  return {
    slices: (ifKnown(slices) ?? []).filter((slice) => slice.service === service),
    podOf: (key: string) => podByKey.get(key),
    nodeOf: (name: string) => {
      const node = nodeByName.get(name);
      return node === undefined ? undefined : readPodNode(node);
    },
    keepsRoutes: true,
  };
}

function describe(step: LoadBalancerStep, observed: ObservedBalancer | undefined): PlanStep {
  const id = observed?.balancer.loadBalancerId ?? 'the new load balancer';
  const { kind } = step;
  const listenerText = (listenerId: string): string => {
    const found = observed?.listeners.find((one) => one.listenerId === listenerId);
    return found === undefined ? listenerId : `${found.protocol}/${found.port} ${listenerId}`;
  };
  switch (step.kind) {
    case 'create':
      return { kind, objects: [step.spec.name], reason: 'no load balancer has the tag of the Service' };
    case 'modify':
      return { kind, objects: [id], reason: `${Object.keys(step.changes).join(', ')} differs from the annotations` };
    case 'setSecurityGroups':
      return { kind, objects: [id], reason: `its security groups are to be ${step.securityGroupIds.join(', ')}` };
    case 'createSecurityGroup':
      return { kind, objects: [step.spec.name], reason: 'the source ranges of the Service have no security group' };
    case 'replacePolicies': {
      const reason = `they are to be ${renderRules(step.rules)}`;
      return { kind, objects: [step.securityGroupId], reason };
    }
    case 'deleteSecurityGroup':
      return { kind, objects: [step.securityGroupId], reason: 'the Service has no source ranges any more' };
    case 'createListeners': {
      const objects = step.spec.ports.map(({ port }) => `${step.spec.protocol}/${port}`);
      return { kind, objects, reason: 'ports of the Service that have no listener' };
    }
    case 'modifyListener': {
      const reason = `${Object.keys(step.changes).join(', ')} differs from what the Service asks for`;
      return { kind, objects: [listenerText(step.listenerId)], reason };
    }
    case 'register':
      return { kind, objects: step.targets.map(targetText), reason: 'backends that are not registered' };
    case 'setWeights': {
      const drains = step.targets.every(({ weight }) => weight === 0);
      const objects = step.targets.map((target) => `${targetText(target)} weight ${target.weight}`);
      const reason = drains
        ? 'no backends any more, or leaving: new connections go elsewhere'
        : 'their weight is not the one of backends';
      return { kind, objects, reason };
    }
    case 'deregister': {
      const reason = 'no backends any more, and they had a minute with weight 0';
      return { kind, objects: step.targets.map(targetText), reason };
    }
    case 'deleteListeners': {
      const reason = 'listeners of the Service for ports that it does not have';
      return { kind, objects: step.listenerIds.map(listenerText), reason };
    }
    case 'delete':
      return { kind, objects: [id], reason: 'the Service is to have no load balancer, or another one' };
  }
}

function targetText({ listener, ip, port }: { listener: string; ip: string; port: number }): string {
  return `${listener} ${ip}:${port}`;
}

function idOf({ listenerId, ip, port }: Pick<Target, 'listenerId' | 'ip' | 'port'>): string {
  return `${listenerId} ${ip}:${port}`;
}
