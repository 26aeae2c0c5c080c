import { SERVICE_ANNOTATION } from '../../../crd/names.ts';
import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { ModelListener, ModelLoadBalancer, ModelTarget } from '../../../sim/vpc/api/model/clb/types.ts';
import type { AuditedWorld } from './auditor.ts';

/** Tag of a load balancer, security group or certificate that is of the cluster: whose it is. */
export const OWNER_TAG = 'tke-eni-owner';
/** Annotation of Services whose Pods are targets. */
export const DIRECT = 'service.cloud.tencent.com/direct-access';
/** How the names of listeners of the cluster's begin. */
const LISTENER_PREFIX = 'tke-eni-';

/** The load balancers that were made for the cluster, each with the Service or Ingress that it was made for, where that is there. */
export function ownBalancers(
  world: AuditedWorld,
): readonly { readonly balancer: ModelLoadBalancer; readonly owner: KubeObject | undefined }[] {
  const owners = [...world.objects('services'), ...world.objects('ingresses')];
  return [...world.host.model.state.clb.balancers().values()].flatMap((balancer) => {
    const tag = balancer.tags[OWNER_TAG];
    if (tag === undefined || balancer.state === 'DELETING') return [];
    return { balancer, owner: owners.find(({ metadata }) => tag.endsWith(`/${metadata.uid}`)) };
  });
}

/** Every load balancer that has listeners of the cluster's, with these, and the Services and Ingresses that are there. */
export function usedBalancers(world: AuditedWorld): readonly {
  readonly balancer: ModelLoadBalancer;
  readonly owners: readonly KubeObject[];
  readonly listeners: readonly ModelListener[];
}[] {
  const all = [...world.objects('services'), ...world.objects('ingresses')];
  const own = new Map(ownBalancers(world).map(({ balancer, owner }) => [balancer.loadBalancerId, owner]));
  return [...world.host.model.state.clb.balancers().values()].flatMap((balancer) => {
    const { loadBalancerId: id } = balancer;
    const owner = own.get(id);
    const owners = all.filter((one) => one === owner || recordedOf(one)['loadBalancerId'] === id);
    const listeners = [...balancer.listeners.values()].filter(
      ({ name }) => own.has(id) || name.startsWith(LISTENER_PREFIX),
    );
    return listeners.length === 0 ? [] : [{ balancer, owners, listeners }];
  });
}

/** What is on record about the load balancer of an object. */
export function recordedOf({ metadata: { annotations = {} } }: KubeObject): Readonly<Record<string, unknown>> {
  return recordOf(JSON.parse(annotations[SERVICE_ANNOTATION.record] ?? '{}'));
}

/** The targets of a listener, those of its rules among them. */
export function targetsOf({ targets, layer7 }: ModelListener): readonly ModelTarget[] {
  return [...targets.values(), ...[...(layer7?.rules.values() ?? [])].flatMap((rule) => [...rule.targets.values()])];
}

/** The Pods behind a Service, or behind the Services that an Ingress names. */
export function podsBehind(world: AuditedWorld, owner: KubeObject): readonly KubeObject[] {
  const paths = recordsOf(recordOf(owner['spec'])['rules']).flatMap((rule) =>
    recordsOf(recordOf(rule['http'])['paths']),
  );
  const names = paths.map(({ backend }) => textOf(recordOf(recordOf(backend)['service'])['name']));
  const services = world
    .objects('services')
    .filter(({ metadata }) => metadata.uid === owner.metadata.uid || names.includes(metadata.name));
  const selectors = services.map(({ spec }) => Object.entries(recordOf(recordOf(spec)['selector'])));
  return world
    .objects('pods')
    .filter(({ metadata: { labels = {} } }) => selectors.some((one) => one.every(([key, is]) => labels[key] === is)));
}
