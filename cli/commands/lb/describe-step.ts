import type { ListenerCertificate } from '../../../cloud/certificates.ts';
import type { Listener } from '../../../cloud/listeners.ts';
import { renderRules } from '../../../cloud-controller-manager/balancers/compare-rules.ts';
import type { LoadBalancerStep, StepTarget } from '../../../cloud-controller-manager/balancers/load-balancer-step.ts';
import { ruleKeyOf, ruleListenerKeyOf } from '../../../cloud-controller-manager/balancers/target-place.ts';
import type { ObservedBalancer } from './find-observed.ts';

/** A call that the controller would make. */
export type PlanStep = {
  readonly kind: LoadBalancerStep['kind'];
  /** What it changes: `lb-…`, `TCP/80`, `HTTP/80 www.example.com/a`, a target each. */
  readonly objects: readonly string[];
  readonly reason: string;
};

/**
 * Describes a call for people.
 * @param owner the kind of the object that has the load balancer
 * @param nameOf the name of a certificate, by its id
 */
export function describeStep(
  step: LoadBalancerStep,
  observed: ObservedBalancer | undefined,
  owner: 'Service' | 'Ingress' = 'Service',
  nameOf: (certId: string) => string = (certId) => `certificate ${certId}`,
): PlanStep {
  const id = observed?.balancer.loadBalancerId ?? 'the new load balancer';
  const { kind } = step;
  const ruleText = (ruleId: string): string => {
    const found = observed?.listeners.flatMap((one) => keysOf(one, ruleId));
    return found?.[0] === undefined ? ruleId : `${found[0]} ${ruleId}`;
  };
  const certificateText = (certificate: ListenerCertificate | undefined): string =>
    certificate === undefined ? '' : ` with ${certificate.certIds.map(nameOf).join(' and ')}`;
  const listenerText = (listenerId: string): string => {
    const found = observed?.listeners.find((one) => one.listenerId === listenerId);
    return found === undefined ? listenerId : `${found.protocol}/${found.port} ${listenerId}`;
  };
  switch (step.kind) {
    case 'create':
      return { kind, objects: [step.spec.name], reason: `no load balancer has the tag of the ${owner}` };
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
      return { kind, objects, reason: `ports of the ${owner} that have no listener` };
    }
    case 'modifyListener': {
      const reason = `${Object.keys(step.changes).join(', ')} differs from what the ${owner} asks for`;
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
      const reason = `listeners of the ${owner} for ports that it does not have`;
      return { kind, objects: step.listenerIds.map(listenerText), reason };
    }
    case 'createRules': {
      const objects = step.rules.map((rule) => `${ruleKeyOf(step.listener, rule)}${certificateText(rule.certificate)}`);
      return { kind, objects, reason: 'hosts and paths that have no rule' };
    }
    case 'modifyRule': {
      const reason = `${Object.keys(step.changes).join(', ')} differs from what the Ingress asks for`;
      return { kind, objects: [step.rule.key], reason };
    }
    case 'modifyDomain': {
      const reason = `${Object.keys(step.changes).join(', ')} differs from what the Ingress asks for`;
      const domain = step.domain === '' ? 'the address' : step.domain;
      return { kind, objects: [`${step.listener} ${domain}${certificateText(step.changes.certificate)}`], reason };
    }
    case 'createRewrites': {
      const objects = step.rewrites.map(({ source, target, code }) => `${source} to ${target} by ${code}`);
      return { kind, objects, reason: 'redirects that are not there' };
    }
    case 'deleteRewrites': {
      const objects = step.rewrites.map((one) => `${ruleText(one.sourceRuleId)} to ${ruleText(one.targetRuleId)}`);
      return { kind, objects, reason: 'redirects that the Ingress does not ask for' };
    }
    case 'deleteRules':
      return {
        kind,
        objects: step.ruleIds.map(ruleText),
        reason: 'rules for hosts and paths that the Ingress does not have',
      };
    case 'delete':
      return { kind, objects: [id], reason: `the ${owner} is to have no load balancer, or another one` };
  }
}

function targetText({ place, ip, port }: StepTarget): string {
  return `${place} ${ip}:${port}`;
}

/** The rule of a listener with an id, as people know it. */
function keysOf(listener: Listener, ruleId: string): readonly string[] {
  const key = ruleListenerKeyOf(listener);
  const rule = listener.rules?.find((one) => one.ruleId === ruleId);
  return key === undefined || rule === undefined ? [] : [ruleKeyOf(key, rule)];
}
