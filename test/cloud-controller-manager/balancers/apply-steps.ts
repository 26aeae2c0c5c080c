import type { Listener, ListenerSettings } from '../../../cloud/listeners.ts';
import type { LoadBalancer } from '../../../cloud/load-balancers.ts';
import type { Target } from '../../../cloud/targets.ts';
import type { LoadBalancerStep } from '../../../cloud-controller-manager/balancers/load-balancer-step.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { placeIdOf, placesOf, type TargetPlace } from '../../../cloud-controller-manager/balancers/target-place.ts';
import { applyRuleStep } from './apply-rule-steps.ts';

let serial = 0;

/** Does what the cloud does for a step, as the documents of its API say. Undefined: there is no load balancer. */
export function applyStep(
  observed: ObservedLoadBalancer | undefined,
  step: LoadBalancerStep,
  listenerName: string,
): ObservedLoadBalancer | undefined {
  if (observed === undefined) {
    if (step.kind !== 'create') throw new Error(`${step.kind} without a load balancer`);
    return { balancer: made(step.spec), isOwn: true, listeners: [], targets: [] };
  }
  const { balancer, listeners, targets } = observed;
  // The first of two with one name; once for all targets.
  const ids = new Map([...placesOf(listeners, listenerName)].map(([id, place]) => [place, id] as const).reverse());
  const idOf = (key: TargetPlace): string => {
    const id = ids.get(key);
    if (id === undefined) throw new Error(`no listener or rule ${key}`);
    return id;
  };
  const isSame = (one: Target, { place, ip, port }: { place: TargetPlace; ip: string; port: number }): boolean =>
    placeIdOf(one) === idOf(place) && one.ip === ip && one.port === port;
  switch (step.kind) {
    case 'create':
      throw new Error('a Service has two load balancers');
    case 'delete':
      if (!observed.isOwn) throw new Error('a load balancer of others is deleted');
      if (targets.length >= 20) throw new Error('FailedOperation.TargetNumCheckRisk');
      return undefined;
    case 'modify':
      return { ...observed, balancer: { ...balancer, ...step.changes } };
    case 'createSecurityGroup': {
      if (observed.sourceGroup !== undefined) throw new Error('a Service has two security groups');
      serial += 1;
      return { ...observed, sourceGroup: { securityGroupId: `sg-${serial}`, version: '0', rules: [] } };
    }
    case 'replacePolicies': {
      const { securityGroupId, rules, version } = step;
      if (observed.sourceGroup?.securityGroupId !== securityGroupId) throw new Error('ResourceNotFound');
      if (observed.sourceGroup.version !== version) throw new Error('UnsupportedOperation.VersionMismatch');
      return { ...observed, sourceGroup: { securityGroupId, rules, version: `${Number(version) + 1}` } };
    }
    case 'deleteSecurityGroup': {
      const { securityGroupId } = step;
      if (balancer.securityGroupIds.includes(securityGroupId)) throw new Error('ResourceInUse');
      const { sourceGroup, surplusGroupIds = [], ...rest } = observed;
      const left = surplusGroupIds.filter((id) => id !== securityGroupId);
      const kept = sourceGroup?.securityGroupId === securityGroupId ? undefined : sourceGroup;
      return { ...rest, ...(kept === undefined ? {} : { sourceGroup: kept }), surplusGroupIds: left };
    }
    case 'setSecurityGroups':
      return { ...observed, balancer: { ...balancer, securityGroupIds: step.securityGroupIds } };
    case 'createListeners': {
      const { protocol, ports, settings } = step.spec;
      if (ports.length > 49 || ports.length === 0) throw new Error('InvalidParameterValue.Length');
      for (const { port } of ports) {
        if (listeners.some((one) => one.protocol === protocol && one.port === port)) throw new Error('PortCheckFailed');
      }
      const created = ports.map(({ port, name }) => listener(name, protocol, port, settings));
      return { ...observed, listeners: [...listeners, ...created] };
    }
    case 'modifyListener': {
      const changed = listeners.map((one) =>
        one.listenerId === step.listenerId
          ? { ...one, ...step.changes, healthCheck: { ...one.healthCheck, ...step.changes.healthCheck } }
          : one,
      );
      return { ...observed, listeners: changed };
    }
    case 'register': {
      if (step.targets.length > 500) throw new Error('InvalidParameterValue.Length');
      if (step.targets.some((one) => targets.some((target) => isSame(target, one)))) throw new Error('Duplicate');
      const registered = step.targets.map(({ place: key, ...one }) => target({ ...one, ...refOf(idOf(key)) }));
      return { ...observed, targets: [...targets, ...registered] };
    }
    case 'setWeights': {
      if (step.targets.some((one) => !targets.some((target) => isSame(target, one)))) throw new Error('no such target');
      const weighed = targets.map((one) => {
        const weight = step.targets.find((change) => isSame(one, change))?.weight ?? one.weight;
        return { ...one, weight };
      });
      return { ...observed, targets: weighed };
    }
    case 'deregister': {
      if (step.targets.some((one) => !targets.some((target) => isSame(target, one)))) throw new Error('no such target');
      return { ...observed, targets: targets.filter((one) => !step.targets.some((gone) => isSame(one, gone))) };
    }
    case 'deleteListeners': {
      const { listenerIds } = step;
      if (listenerIds.length === 0 || listenerIds.length > 20) throw new Error('InvalidParameterValue.Length');
      const doomed = listeners.filter((one) => listenerIds.includes(one.listenerId));
      if (doomed.some(({ name }) => name !== listenerName)) throw new Error('a listener of others is deleted');
      return {
        ...observed,
        listeners: listeners.filter((one) => !listenerIds.includes(one.listenerId)),
        targets: targets.filter((one) => !listenerIds.includes(one.listenerId)),
      };
    }
    default:
      return applyRuleStep(observed, step, listenerName);
  }
}

/** Makes a listener. */
export function listener(name: string, protocol: string, port: number, settings: ListenerSettings = {}): Listener {
  serial += 1;
  const rules = protocol === 'HTTP' || protocol === 'HTTPS' ? { rules: [] } : {};
  return { listenerId: `lbl-${serial}`, name, protocol, port, createdAtMs: 0, ...rules, ...settings };
}

/** Makes a target. */
export function target(fields: Pick<Target, 'listenerId' | 'ruleId' | 'ip' | 'port' | 'weight'>): Target {
  return { kind: 'CVM', tag: '', registeredAtMs: 0, ...fields };
}

/** Makes a load balancer as it is after its creation. */
export function made(spec: Extract<LoadBalancerStep, { readonly kind: 'create' }>['spec']): LoadBalancer {
  serial += 1;
  const { type, name, vpcId, subnetId = '', vip = `10.0.0.${serial % 250}`, tags = {}, passesToTarget = false } = spec;
  return {
    loadBalancerId: `lb-${serial}`,
    name,
    type,
    isNormal: true,
    vips: [vip],
    domain: '',
    vpcId,
    subnetId,
    tags,
    securityGroupIds: [],
    passesToTarget,
    isSnatPro: false,
    isDeleteProtected: false,
    isPrepaid: false,
    createdAtMs: 0,
    ...(spec.isp === undefined ? {} : { isp: spec.isp }),
  };
}

function refOf(id: string): Pick<Target, 'listenerId' | 'ruleId'> {
  const [listenerId = '', ruleId = ''] = id.split(' ');
  return ruleId === '' ? { listenerId } : { listenerId, ruleId };
}
