import type { CallContext } from '../../../cloud/cloud.ts';
import type { LoadBalancer } from '../../../cloud/load-balancers.ts';
import { decodeCcmNode } from '../../../cloud-controller-manager/controller/ccm-node.ts';
import { readCloudNode } from '../../../cloud-controller-manager/nodes/cloud-node.ts';
import { findVpc, readSeen } from '../../../cloud-controller-manager/nodes/seen-instance.ts';
import { decodeBackendPod } from '../../../cloud-controller-manager/services/backend-pod.ts';
import { decodeEndpointSlice } from '../../../cloud-controller-manager/services/endpoint-slice.ts';
import { ownerOf } from '../../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readRecord } from '../../../cloud-controller-manager/services/read-record.ts';
import { type Ingress, readServiceHead } from '../../../cloud-controller-manager/services/read-service.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../../crd/cloud-tags.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { ENDPOINT_SLICES, NODES, PODS, SERVICES } from '../../../kube/resource-types.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CloudReader, ReadableCloud } from '../../command/open-cloud-reader.ts';
import type { Progress } from '../../output/progress.ts';
import { readList } from '../cluster/read-cluster.ts';
import type { LbArgs } from './arguments.ts';
import type { BalancerFacts, LbCloud, LbFacts } from './lb-facts.ts';
import { readGroupFacts } from './read-group-facts.ts';
import { parseConnection } from './select-connection.ts';

/** Name of the listeners of Services. */
const LISTENER_NAME = /^tke-eni-[0-9a-f]{16}$/;

/** What it is asked for. */
type LbTerms = Pick<LbArgs, 'what' | 'cluster-id' | 'vpc-id' | 'load-balancer-class'>;

/** What `lb` asks. */
type LbSources = {
  readonly client: Pick<KubeClient, 'listPage'>;
  readonly openCloud: () => Promise<CloudReader>;
  readonly signal: AbortSignal;
  readonly progress: Pick<Progress, 'show'>;
};

/**
 * Reads Services, Nodes, Pods and EndpointSlices, and the load balancers of the cluster with all that they have. It changes
 * nothing. @throws UserError NO_CLUSTER; FORBIDDEN when Services cannot be read; NOT_FOUND when the named Service is not there
 */
export async function readLbFacts(args: LbTerms, { client, openCloud, signal, progress }: LbSources): Promise<LbFacts> {
  const reader = {
    client,
    signal,
    onProgress: (plural: string, count: number) => progress.show(`${count} ${plural}`),
  };
  const [objects, nodes, pods, slices] = await Promise.all([
    readList(reader, SERVICES, (object) => (isBalanced(object) ? object : undefined)),
    readList(reader, NODES, decodeCcmNode),
    readList(reader, PODS, decodeBackendPod),
    readList(reader, ENDPOINT_SLICES, decodeEndpointSlice),
  ]);
  if (objects.kind === 'unknown') throw new UserError('FORBIDDEN', objects.why, objects.next);
  const services = selectServices(objects.value, args.what);
  if (services.length === 0 && args.what?.includes('/'))
    throw new UserError(
      'NOT_FOUND',
      `no Service ${args.what} of type LoadBalancer`,
      'kubectl get services -A lists all',
    );
  const seen = (ifKnown(nodes) ?? []).flatMap((node) => readSeen(readCloudNode(node))?.vpcId ?? []);
  const vpcId = findVpc(args['vpc-id'] ?? '', seen);
  progress.show('asking the cloud');
  const isPart = services.length < objects.value.length;
  const read = await tryReadCloud(openCloud, { services, nodes, pods, isPart }, args['cluster-id']);
  const { clusterId = args['cluster-id'], groups, ...cloud } = ifKnown(read) ?? { balancers: [], groups: undefined };
  return {
    services,
    nodes,
    pods,
    slices,
    cloud: read.kind === 'known' ? known(cloud) : read,
    groups: groups ?? unknown('security groups were not read', 'see the warning about the cloud'),
    clusterId,
    vpcId: vpcId ?? onlyVpcOf(cloud.balancers),
    loadBalancerClass: args['load-balancer-class'],
  };
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
  const isReached = ({ ip, hostname }: Ingress): boolean => ip === address || hostname === address;
  const reached = objects.filter((object) => readServiceHead(object).ingress.some(isReached));
  if (address === undefined || reached.length === 0) return objects;
  const ids = new Set(reached.flatMap(idsOf));
  return objects.filter((object) => reached.includes(object) || idsOf(object).some((id) => ids.has(id)));
}

function onlyVpcOf(balancers: readonly BalancerFacts[]): string | undefined {
  return findVpc(
    '',
    balancers.map(({ balancer }) => balancer.vpcId),
  );
}

type ReadCloud = LbCloud & { readonly clusterId?: string; readonly groups: LbFacts['groups'] };

/** What is asked about in the cloud. */
type ClusterFacts = Pick<LbFacts, 'services' | 'nodes' | 'pods'> & {
  /** The Services are some of the cluster's: only their load balancers are read. */
  readonly isPart: boolean;
};

async function tryReadCloud(
  openCloud: LbSources['openCloud'],
  cluster: ClusterFacts,
  clusterId: string | undefined,
): Promise<Known<ReadCloud>> {
  try {
    return known(await readCloud(await openCloud(), cluster, clusterId));
  } catch (error) {
    if (!(error instanceof UserError) || error.code !== 'NO_CLOUD') throw error;
    return unknown(error.message, error.next);
  }
}

async function readCloud(reader: CloudReader, cluster: ClusterFacts, given: string | undefined): Promise<ReadCloud> {
  const { read } = reader;
  const ids = [...new Set(cluster.services.flatMap(idsOf))];
  const described = ids.length === 0 ? [] : await read(({ loadBalancers }, call) => loadBalancers.describe(ids, call));
  const clusterId = given ?? described.find(({ tags }) => tags[OWNER_TAG] !== undefined)?.tags[CLUSTER_TAG];
  const tag = { key: CLUSTER_TAG, value: clusterId ?? '' };
  const swept =
    clusterId === undefined
      ? []
      : (await read(({ loadBalancers }, call) => loadBalancers.find({ tag }, call))).loadBalancers;
  const owners = new Set(cluster.services.map(({ metadata: { uid = '' } }) => ownerOf(clusterId ?? '', uid)));
  const own = swept.filter(
    ({ tags: { [OWNER_TAG]: owner } }) => owner !== undefined && (!cluster.isPart || owners.has(owner)),
  );
  const all = [...new Map([...described, ...own].map((one) => [one.loadBalancerId, one])).values()];
  const quotas = await read(({ loadBalancers }, call) => loadBalancers.quotas(call));
  const complete = all.filter(({ isNormal }) => isNormal);
  const health =
    complete.length === 0
      ? []
      : await read(({ targets }, call) =>
          targets.health(
            complete.map(({ loadBalancerId }) => loadBalancerId),
            call,
          ),
        );
  const healthOf = Map.groupBy(health, ({ loadBalancerId }) => loadBalancerId);
  const balancers = await Promise.all(
    all.map(async (balancer) => ({
      ...(await read((cloud, call) => readContents(cloud, balancer, call))),
      balancer,
      health: healthOf.get(balancer.loadBalancerId) ?? [],
    })),
  );
  const maxTargets = quotas.targets?.limit;
  return {
    balancers,
    groups: await readGroupFacts(reader, { balancers }, cluster),
    ...(maxTargets === undefined ? {} : { maxTargets }),
    ...(clusterId === undefined ? {} : { clusterId }),
  };
}

async function readContents(
  { listeners, targets }: ReadableCloud,
  { loadBalancerId, isNormal }: LoadBalancer,
  call: CallContext,
): Promise<Pick<BalancerFacts, 'listeners' | 'targets'>> {
  if (!isNormal) return { listeners: [], targets: [] };
  const all = await listeners.list(loadBalancerId, call);
  const ids = all.filter(({ name }) => LISTENER_NAME.test(name)).map(({ listenerId }) => listenerId);
  return { listeners: all, targets: ids.length === 0 ? [] : await targets.list(loadBalancerId, ids, call) };
}

/** The load balancers that a Service names: the one on record, and an existing one. */
function idsOf(object: KubeObject): readonly string[] {
  const head = readServiceHead(object);
  const { existedLbId } = readAnnotations(head.annotations, head.labels).settings;
  return [readRecord(head).loadBalancerId, existedLbId].filter((id) => id !== undefined);
}
