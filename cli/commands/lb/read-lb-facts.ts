import { decodeBackendPod } from '../../../cloud-controller-manager/backends/backend-pod.ts';
import type { BackendPort } from '../../../cloud-controller-manager/backends/backend-port.ts';
import { decodeEndpointSlice } from '../../../cloud-controller-manager/backends/endpoint-slice.ts';
import { ownerOf, type StatusAddress } from '../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { readOwnerMark } from '../../../cloud-controller-manager/balancers/owner-mark.ts';
import { decodeCcmNode } from '../../../cloud-controller-manager/controller/ccm-node.ts';
import { unitKeysOf } from '../../../cloud-controller-manager/ingresses/decide-membership.ts';
import { readAnnotations as readIngressAnnotations } from '../../../cloud-controller-manager/ingresses/read-annotations.ts';
import { readIngressHead } from '../../../cloud-controller-manager/ingresses/read-ingress.ts';
import { readCloudNode } from '../../../cloud-controller-manager/nodes/cloud-node.ts';
import { findVpc } from '../../../cloud-controller-manager/nodes/decide-vpc.ts';
import { readSeen } from '../../../cloud-controller-manager/nodes/seen-instance.ts';
import { decodeConfig } from '../../../cloud-controller-manager/service-configs/decode-config.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readBackendPorts } from '../../../cloud-controller-manager/services/read-ports.ts';
import { readServiceHead } from '../../../cloud-controller-manager/services/read-service.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import {
  ENDPOINT_SLICES,
  INGRESS_CLASSES,
  INGRESSES,
  NODES,
  PODS,
  SERVICES,
  TKE_SERVICE_CONFIGS,
} from '../../../kube/resource-types.ts';
import { recordOf, textOf } from '../../../runtime/json.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CloudReader } from '../../command/open-cloud-reader.ts';
import type { Progress } from '../../output/progress.ts';
import { type ClusterReader, readList } from '../cluster/read-cluster.ts';
import type { LbArgs } from './arguments.ts';
import type { BalancerFacts, IngressFacts, LbFacts } from './lb-facts.ts';
import { readLbCloud } from './read-lb-cloud.ts';
import { parseConnection } from './select-connection.ts';

/** What it is asked for. */
type LbTerms = Pick<LbArgs, 'what' | 'cluster-id' | 'vpc-id' | 'load-balancer-class'> &
  Partial<Pick<LbArgs, 'plan' | 'ingress-without-class'>>;

/** What `lb` asks. */
type LbSources = {
  readonly client: Pick<KubeClient, 'listPage'>;
  readonly openCloud: () => Promise<CloudReader>;
  readonly signal: AbortSignal;
  readonly progress: Pick<Progress, 'show'>;
};

/**
 * Reads Services, Nodes, Pods and EndpointSlices, for a plan Ingresses too, and the load balancers of the cluster with all that
 * they have. It changes nothing. @throws UserError NO_CLUSTER; FORBIDDEN when Services cannot be read; NOT_FOUND when the named Service is not there
 */
export async function readLbFacts(args: LbTerms, { client, openCloud, signal, progress }: LbSources): Promise<LbFacts> {
  const reader = {
    client,
    signal,
    onProgress: (plural: string, count: number) => progress.show(`${count} ${plural}`),
  };
  const { plan = false, what } = args;
  const [all, nodes, pods, slices, configs, read] = await Promise.all([
    readList(reader, SERVICES, (object) => (plan || isBalanced(object) ? object : undefined)),
    readList(reader, NODES, decodeCcmNode),
    readList(reader, PODS, decodeBackendPod),
    readList(reader, ENDPOINT_SLICES, decodeEndpointSlice),
    readList(reader, TKE_SERVICE_CONFIGS, (object) => [keyOf(object), decodeConfig(object)] as const),
    plan ? readIngressFacts(reader, args['ingress-without-class'] ?? false) : undefined,
  ]);
  if (all.kind === 'unknown') throw new UserError('FORBIDDEN', all.why, all.next);
  const objects = all.value.filter(isBalanced);
  const services = selectServices(objects, what);
  const ingresses = read === undefined ? undefined : selectIngresses(read, portsOf(all.value), what);
  const found = ingresses === undefined ? [] : (ifKnown(ingresses)?.ingresses ?? []);
  if (services.length + found.length === 0 && what?.includes('/'))
    throw new UserError(
      'NOT_FOUND',
      `no Service ${what} of type LoadBalancer${plan ? ', and no Ingress' : ''}`,
      plan ? 'kubectl get services,ingresses -A lists all' : 'kubectl get services -A lists all',
    );
  const seen = (ifKnown(nodes) ?? []).map(readCloudNode).flatMap((node) => {
    const its = readSeen(node)?.vpcId;
    return its === undefined ? [] : [{ vpcId: its, createdAt: node.createdAt }];
  });
  const vpcId = findVpc(args['vpc-id'] ?? '', seen);
  progress.show('asking the cloud');
  const isPart = services.length < objects.length || (plan && what !== undefined);
  const heads = [...services.map(readServiceHead), ...found.map(readIngressHead)];
  const ids = [...new Set([...services.flatMap(idsOf), ...found.flatMap(idsOfIngress)])];
  const owners = (id: string): readonly string[] => heads.map(({ uid, kind }) => ownerOf(id, uid, kind));
  const question = { ids, owners: isPart ? owners : undefined, clusterId: args['cluster-id'] };
  const answer = await readLbCloud(openCloud, question, { nodes, pods });
  const { clusterId = args['cluster-id'], groups, ...cloud } = ifKnown(answer) ?? { balancers: [], groups: undefined };
  return {
    services,
    nodes,
    pods,
    slices,
    configs: configs.kind === 'known' ? known(new Map(configs.value)) : configs,
    ...(ingresses === undefined ? {} : { ingresses }),
    cloud: answer.kind === 'known' ? known(cloud) : answer,
    groups: groups ?? unknown('security groups were not read', 'see the warning about the cloud'),
    clusterId,
    vpcId: vpcId ?? onlyVpcOf(cloud.balancers),
    loadBalancerClass: args['load-balancer-class'],
  };
}

function keyOf({ metadata: { namespace = '', name } }: KubeObject): string {
  return `${namespace}/${name}`;
}

function isBalanced(object: KubeObject): boolean {
  const { type, hasFinalizer } = readServiceHead(object);
  return type === 'LoadBalancer' || hasFinalizer;
}

/**
 * Selects the named Service, or those that share a load balancer with one that has the address in its status. All where
 * no status has it: the load balancers themselves tell.
 */
function selectServices(objects: readonly KubeObject[], what: string | undefined): readonly KubeObject[] {
  if (what?.includes('/')) return objects.filter((object) => readServiceHead(object).key === what);
  const address = what === undefined ? undefined : parseConnection(what)?.address;
  const isReached = ({ ip, hostname }: StatusAddress): boolean => ip === address || hostname === address;
  const reached = objects.filter((object) => readServiceHead(object).ingress.some(isReached));
  if (address === undefined || reached.length === 0) return objects;
  const ids = new Set(reached.flatMap(idsOf));
  return objects.filter((object) => reached.includes(object) || idsOf(object).some((id) => ids.has(id)));
}

function onlyVpcOf(balancers: readonly BalancerFacts[]): string | undefined {
  const [first, ...others] = new Set(balancers.map(({ balancer }) => balancer.vpcId));
  return others.length === 0 ? first : undefined;
}

/** The load balancers that a Service names: the one on record, and an existing one. */
function idsOf(object: KubeObject): readonly string[] {
  const head = readServiceHead(object);
  const { existedLbId } = readAnnotations(head.annotations, head.labels).settings;
  return [readOwnerMark(head).loadBalancerId, existedLbId].filter((id) => id !== undefined);
}

/** The load balancers that an Ingress names. */
function idsOfIngress(object: KubeObject): readonly string[] {
  const head = readIngressHead(object);
  const { existedLbId } = readIngressAnnotations(head.annotations).settings;
  return [readOwnerMark(head).loadBalancerId, existedLbId].filter((id) => id !== undefined);
}

/** Reads Ingresses and their classes. Secrets are not asked for. @throws UserError NO_CLUSTER */
async function readIngressFacts(
  reader: Omit<ClusterReader, 'clock'>,
  servesWithoutClass: boolean,
): Promise<Known<Omit<IngressFacts, 'ports'>>> {
  const [ingresses, classes] = await Promise.all([
    readList(reader, INGRESSES, (object) => object),
    readList(reader, INGRESS_CLASSES, (object) => [object.metadata.name, controllerOf(object)] as const),
  ]);
  if (ingresses.kind === 'unknown') return ingresses;
  if (classes.kind === 'unknown') return classes;
  return known({ ingresses: ingresses.value, controllers: new Map(classes.value), servesWithoutClass });
}

/** Returns the facts with the ports of Services, and of the named Ingress and those that share its load balancer alone. */
function selectIngresses(
  read: Known<Omit<IngressFacts, 'ports'>>,
  ports: ReadonlyMap<string, readonly BackendPort[] | 'external'>,
  key: string | undefined,
): Known<IngressFacts> {
  if (read.kind === 'unknown') return read;
  const facts = read.value;
  const { ingresses } = facts;
  if (key === undefined) return known({ ...facts, ports });
  const units = new Set(ingresses.filter((one) => keyOf(one) === key).flatMap(unitsOf));
  return known({ ...facts, ports, ingresses: ingresses.filter((one) => unitsOf(one).some((unit) => units.has(unit))) });
}

/** Reads the ports of Services, by `namespace/name`. */
function portsOf(services: readonly KubeObject[]): ReadonlyMap<string, readonly BackendPort[] | 'external'> {
  return new Map(services.map((object) => [keyOf(object), readBackendPorts(object)]));
}

function controllerOf(object: KubeObject): string {
  return textOf(recordOf(object['spec'])['controller']);
}

function unitsOf(object: KubeObject): readonly string[] {
  return unitKeysOf(readIngressHead(object));
}
