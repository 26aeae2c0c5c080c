import { createHash } from 'node:crypto';
import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { ModelListener, ModelLoadBalancer, ModelTarget } from '../../../sim/vpc/api/model/clb/types.ts';
import { CLUSTER_ID } from '../programs/ccm.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';
import {
  DIRECT,
  OWNER_TAG,
  ownBalancers,
  podsBehind,
  recordedOf,
  targetsOf,
  usedBalancers,
} from './balancer-owners.ts';

const EXISTING = 'service.kubernetes.io/tke-existed-lbid';
const CLASS = 'kubernetes.io/ingress.class';
/** Of a target that serves. */
const WEIGHT = 10;

/** Q2 for load balancers: each Service of type LoadBalancer has one, as it asks for it and as it says, and nothing of ours is nobody's. */
export const openBalancersAreOwners: OpenAuditor = (world) => ({
  name: 'Q2',
  rest: function* () {
    const own = ownBalancers(world);
    const balancers = [...world.host.model.state.clb.balancers().values()];
    const used = new Set<string>();
    const groups = new Set<string>();
    for (const { balancer, owner } of own) {
      if (owner === undefined && !isKept(balancer)) yield `${balancer.loadBalancerId} is nobody's`;
      if (owner?.kind === 'Service' && recordOf(owner['spec'])['type'] !== 'LoadBalancer')
        yield `${owner.metadata.name} asks for no load balancer, and has ${balancer.loadBalancerId}`;
      for (const { layer7 } of balancer.listeners.values())
        for (const { certIds } of [layer7?.certificates, ...(layer7?.domains.values() ?? [])].flatMap(
          (one) => one ?? [],
        ))
          for (const id of certIds) used.add(id);
      for (const id of balancer.securityGroupIds) groups.add(id);
    }
    for (const { certId, tags } of world.host.model.state.certificates.all())
      if (tags[OWNER_TAG] !== undefined && !used.has(certId)) yield `the certificate ${certId} is nobody's`;
    for (const { groupId, tags } of world.host.model.state.securityGroups.made.values())
      if (tags[OWNER_TAG] !== undefined && !groups.has(groupId)) yield `the security group ${groupId} is nobody's`;
    for (const service of world.objects('services')) {
      const { name, annotations = {}, uid } = service.metadata;
      if (recordOf(service['spec'])['type'] !== 'LoadBalancer') {
        if (recordsOf(recordOf(recordOf(service['status'])['loadBalancer'])['ingress']).length > 0)
          yield `${name} says an address, and asks for no load balancer`;
        if ((service.metadata.finalizers ?? []).length > 0) yield `${name} is kept by a finalizer`;
        continue;
      }
      const existing = annotations[EXISTING];
      const [balancer] =
        existing === undefined
          ? own.flatMap((one) => (one.owner?.metadata.uid === uid ? [one.balancer] : []))
          : balancers.filter(({ loadBalancerId }) => loadBalancerId === existing);
      if (balancer === undefined) yield `${name} has no load balancer`;
      else yield* differences(world, service, balancer);
      if (annotations[DIRECT] === 'true') yield* gated(world, service);
    }
    yield* leftovers(world, own);
    for (const { balancer, owners, listeners } of usedBalancers(world)) {
      yield* spent(world, owners, listeners);
      const ingresses = owners.filter(({ kind }) => kind === 'Ingress');
      for (const { metadata } of ingresses)
        if (metadata.annotations?.[CLASS] !== 'qcloud')
          yield `${metadata.name} of others has ${balancer.loadBalancerId}`;
      if (ingresses.length > 0) yield* otherRules(world, ingresses, listeners);
    }
  },
});

/** Whether a Service asked that its load balancer stays when it goes. */
function isKept({ name, isDeleteProtected }: ModelLoadBalancer): boolean {
  return isDeleteProtected && name.startsWith('kept_');
}

/** Listeners with a name of ours whose owner does not live, or is on another load balancer by its record. */
function* leftovers(world: AuditedWorld, own: ReturnType<typeof ownBalancers>): Iterable<string> {
  const owners = [...world.objects('services'), ...world.objects('ingresses')];
  for (const { loadBalancerId, listeners } of world.host.model.state.clb.balancers().values()) {
    const isOwn = ({ metadata }: KubeObject): boolean =>
      own.some(
        ({ balancer, owner }) => owner?.metadata.uid === metadata.uid && balancer.loadBalancerId === loadBalancerId,
      );
    const here = owners.filter((one) => isOwn(one) || recordedOf(one)['loadBalancerId'] === loadBalancerId);
    const names = here.flatMap((one) => [
      listenerNameOf(`${one.kind === 'Ingress' ? 'ingress' : 'service'}/${one.metadata.uid}`),
      ...(recordedOf(one)['grouped'] === true ? [listenerNameOf(`ingress-group/${loadBalancerId}`)] : []),
    ]);
    for (const { listenerId, name } of listeners.values())
      if (name.startsWith('tke-eni-') && !names.includes(name)) yield `${listenerId} is nobody's on ${loadBalancerId}`;
  }
}

/** The name that listeners have in the cloud, by whose they are. */
function listenerNameOf(owner: string): string {
  return `tke-eni-${createHash('sha256').update(`${CLUSTER_ID}/${owner}`).digest('hex').slice(0, 16)}`;
}

/** Pods that wait for nothing but a gate that their load balancer opens. */
function* gated(world: AuditedWorld, service: KubeObject): Iterable<string> {
  for (const { metadata, status } of podsBehind(world, service)) {
    const all = recordsOf(recordOf(status)['conditions']);
    const isTrue = (type: string): boolean => all.some((one) => one['type'] === type && one['status'] === 'True');
    if (metadata.deletionTimestamp === undefined && isTrue('ContainersReady') && !isTrue('Ready'))
      yield `${metadata.name} waits for its gate`;
  }
}

/** What a load balancer of a Service is, and should not be. */
function* differences(world: AuditedWorld, service: KubeObject, balancer: ModelLoadBalancer): Iterable<string> {
  const { name, annotations = {} } = service.metadata;
  const said = recordsOf(recordOf(recordOf(service['status'])['loadBalancer'])['ingress']).map(({ ip }) => textOf(ip));
  if (said.join() !== balancer.vip)
    yield `${name} says ${said.join() || 'nothing'}, and its address is ${balancer.vip}`;
  const ports = recordsOf(recordOf(service['spec'])['ports']);
  const wanted = ports.map((port) => {
    const ips = annotations[DIRECT] === 'true' ? readyIps(world, service) : nodeIps(world);
    const at = annotations[DIRECT] === 'true' ? (port['targetPort'] ?? port['port']) : port['nodePort'];
    return `${textOf(port['protocol'])}/${port['port']}: ${ips
      .map((ip) => `${ip}:${at} ${WEIGHT}`)
      .sort()
      .join(' ')}`;
  });
  const its = [...balancer.listeners.values()].filter(
    (one) => annotations[EXISTING] === undefined || one.name === listenerNameOf(`service/${service.metadata.uid}`),
  );
  const is = its.map((listener) => {
    const serving = targetsOf(listener).filter(({ weight }) => weight > 0);
    return `${listener.protocol}/${listener.port}: ${serving.map(wayOf).sort().join(' ')}`;
  });
  if (is.sort().join() !== wanted.sort().join()) yield `${name} has ${is.join()}, and wants ${wanted.join()}`;
}

/** Targets that are Pods, and none of those that there are behind the owners. */
function* spent(
  world: AuditedWorld,
  owners: readonly KubeObject[],
  listeners: readonly ModelListener[],
): Iterable<string> {
  const pods = owners.flatMap((owner) => podsBehind(world, owner));
  const ips = new Set(pods.map(({ status }) => textOf(recordOf(status)['podIP'])));
  for (const listener of listeners)
    for (const { ip, type } of targetsOf(listener))
      if (type === 'ENI' && !ips.has(ip)) yield `${ip} is a target of ${listener.listenerId} for no Pod`;
}

/** Rules of the listeners of Ingresses on a load balancer that are not those that they ask for, the older ones first. */
function* otherRules(
  world: AuditedWorld,
  owners: readonly KubeObject[],
  listeners: readonly ModelListener[],
): Iterable<string> {
  const wanted = new Map<string, string>();
  for (const owner of owners.toSorted((one, other) => (ageOf(one) < ageOf(other) ? -1 : 1)))
    for (const [rule, targets] of rulesOf(world, owner)) if (!wanted.has(rule)) wanted.set(rule, targets);
  const rules = listeners.flatMap(({ layer7 }) => [...(layer7?.rules.values() ?? [])]);
  const is = rules.flatMap(({ domain, url, targets, rewriteTo }) => {
    const serving = [...targets.values()].filter(({ weight }) => weight > 0);
    return rewriteTo === undefined ? [`${domain}${url}: ${serving.map(wayOf).sort().join(' ')}`] : [];
  });
  const names = owners.map(({ metadata: { name } }) => name).join();
  const asked = [...wanted].map(([rule, targets]) => `${rule}: ${targets}`).sort();
  const said = [...new Set(is)].sort();
  if (said.join() !== asked.join()) yield `${names} has ${said.join()}, and wants ${asked.join()}`;
}

function ageOf({ metadata: { creationTimestamp = '', uid = '' } }: KubeObject): string {
  return `${creationTimestamp} ${uid}`;
}

/** What the rules of an Ingress with a host lead to: the Pods that are ready behind each Service, at its port. */
function* rulesOf(world: AuditedWorld, owner: KubeObject): Iterable<readonly [string, string]> {
  for (const rule of recordsOf(recordOf(owner['spec'])['rules']))
    for (const { path, backend } of recordsOf(recordOf(rule['http'])['paths'])) {
      const { name, port } = recordOf(recordOf(backend)['service']);
      const service = world.objects('services').find(({ metadata }) => metadata.name === name);
      const one = recordsOf(recordOf(service?.['spec'])['ports']).find(
        (its) => its['port'] === recordOf(port)['number'],
      );
      const at = one?.['targetPort'] ?? one?.['port'];
      const targets = service === undefined ? [] : readyIps(world, service).map((ip) => `${ip}:${at} ${WEIGHT}`);
      yield [`${textOf(rule['host'])}${textOf(path)}`, targets.sort().join(' ')];
    }
}

function wayOf({ ip, port, weight }: ModelTarget): string {
  return `${ip}:${port} ${weight}`;
}

function readyIps(world: AuditedWorld, owner: KubeObject): readonly string[] {
  const ready = podsBehind(world, owner).filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined &&
      recordsOf(recordOf(status)['conditions']).some((one) => one['type'] === 'Ready' && one['status'] === 'True'),
  );
  return ready.map(({ status }) => textOf(recordOf(status)['podIP'])).sort();
}

function nodeIps(world: AuditedWorld): readonly string[] {
  const isOut = ({ metadata, spec }: KubeObject): boolean =>
    metadata.labels?.['node.kubernetes.io/exclude-from-external-load-balancers'] !== undefined ||
    recordsOf(recordOf(spec)['taints']).some(({ key }) => key === 'ToBeDeletedByClusterAutoscaler');
  const nodes = world.objects('nodes').filter((node) => !isOut(node));
  // One that says no address is no target.
  return nodes
    .map(({ status }) => textOf(recordsOf(recordOf(status)['addresses'])[0]?.['address']))
    .filter((address) => address !== '');
}
