import type { CallContext } from '../../../cloud/cloud.ts';
import type { LoadBalancer } from '../../../cloud/load-balancers.ts';
import { readCloudNode } from '../../../cloud-controller-manager/nodes/cloud-node.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../../crd/cloud-tags.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { CloudReader, ReadableCloud } from '../../command/open-cloud-reader.ts';
import { orReason } from '../../command/or-reason.ts';
import { findOwners } from './find-owners.ts';
import type { BalancerFacts, GroupFacts, LbCloud, LbFacts } from './lb-facts.ts';

/** What is asked about in the cloud. */
type BalancerQuestion = {
  /** Ids that objects name. */
  readonly ids: readonly string[];
  /** `OWNER_TAG` of those that are asked about, of a cluster; undefined: of all that have one. */
  readonly owners: ((clusterId: string) => readonly string[]) | undefined;
  readonly clusterId: string | undefined;
};

/** What is read of the cloud, with the id of the cluster where it was found. */
type LbReading = LbCloud & { readonly clusterId?: string; readonly groups: LbFacts['groups'] };

/**
 * Reads load balancers with all that they have, and the security groups that their packets pass. Where the cloud does not
 * answer, the result contains the reason instead.
 */
export async function readLbCloud(
  openCloud: () => Promise<CloudReader>,
  question: BalancerQuestion,
  cluster: Pick<LbFacts, 'nodes' | 'pods'>,
): Promise<Known<LbReading>> {
  return await orReason(async () => {
    const reader = await openCloud();
    const read = await readBalancers(reader, question);
    return known({ ...read, groups: await readGroupFacts(reader, read, cluster) });
  });
}

/** Name of the listeners of Services and Ingresses. */
const LISTENER_NAME = /^tke-eni-[0-9a-f]{16}$/;

/** Reads load balancers with all that they have. The id of the cluster is found in their tags. @throws UserError NO_CLOUD */
async function readBalancers(
  { read }: CloudReader,
  { ids, owners, clusterId: given }: BalancerQuestion,
): Promise<LbCloud & { readonly clusterId?: string }> {
  const described = ids.length === 0 ? [] : await read(({ loadBalancers }, call) => loadBalancers.describe(ids, call));
  const clusterId = given ?? described.find(({ tags }) => tags[OWNER_TAG] !== undefined)?.tags[CLUSTER_TAG];
  const tag = { key: CLUSTER_TAG, value: clusterId ?? '' };
  const swept =
    clusterId === undefined
      ? []
      : (await read(({ loadBalancers }, call) => loadBalancers.find({ tag }, call))).loadBalancers;
  const asked = owners === undefined ? undefined : new Set(owners(clusterId ?? ''));
  const own = swept.filter(
    ({ tags: { [OWNER_TAG]: owner } }) => owner !== undefined && (asked === undefined || asked.has(owner)),
  );
  const all = [...new Map([...described, ...own].map((one) => [one.loadBalancerId, one])).values()];
  const { targets: mostTargets, rules: mostRules } = await read(({ loadBalancers }, call) =>
    loadBalancers.quotas(call),
  );
  const complete = all.filter(({ isNormal }) => isNormal).map(({ loadBalancerId }) => loadBalancerId);
  const health = complete.length === 0 ? [] : await read(({ targets }, call) => targets.health(complete, call));
  const healthOf = Map.groupBy(health, ({ loadBalancerId }) => loadBalancerId);
  const balancers = await Promise.all(
    all.map(async (balancer) => ({
      ...(await read((cloud, call) => readContents(cloud, balancer, call))),
      balancer,
      health: healthOf.get(balancer.loadBalancerId) ?? [],
    })),
  );
  return {
    balancers,
    ...(mostTargets === undefined ? {} : { maxTargets: mostTargets.limit }),
    ...(mostRules === undefined ? {} : { maxRules: mostRules.limit }),
    ...(clusterId === undefined ? {} : { clusterId }),
  };
}

async function readContents(
  { listeners, rewrites, targets }: ReadableCloud,
  { loadBalancerId, isNormal }: LoadBalancer,
  call: CallContext,
): Promise<Pick<BalancerFacts, 'listeners' | 'targets' | 'rewrites'>> {
  if (!isNormal) return { listeners: [], targets: [] };
  const all = await listeners.list(loadBalancerId, call);
  const ours = all.filter(({ name }) => LISTENER_NAME.test(name));
  const ids = ours.map(({ listenerId }) => listenerId);
  const isRedirected = ours.some(({ rules = [] }) => rules.some(({ rewriteTo }) => rewriteTo !== undefined));
  return {
    listeners: all,
    targets: ids.length === 0 ? [] : await targets.list(loadBalancerId, ids, call),
    ...(isRedirected ? { rewrites: await rewrites.list(loadBalancerId, call) } : {}),
  };
}

/** More groups than this are not read: each is a call. */
const MAX_GROUPS = 100;

/** Reads the security groups of load balancers and of what is behind their targets, with their rules. */
async function readGroupFacts(
  { read }: CloudReader,
  { balancers }: LbCloud,
  cluster: Pick<LbFacts, 'nodes' | 'pods'>,
): Promise<Known<GroupFacts>> {
  const targets = balancers.flatMap((one) => one.targets);
  const instanceOf = findInstances(
    targets.filter(({ eniId }) => eniId === undefined),
    cluster,
  );
  const eniIds = [...new Set(targets.flatMap(({ eniId }) => eniId ?? []))];
  const instanceIds = [
    ...new Set([
      ...targets.flatMap(({ eniId, instanceId }) => (eniId === undefined ? (instanceId ?? []) : [])),
      ...instanceOf.values(),
    ]),
  ];
  const facts = await orReason(async () => {
    const enis = eniIds.length === 0 ? [] : await read((cloud, call) => cloud.enis.describe(eniIds, call));
    const instances =
      instanceIds.length === 0 ? [] : await read((cloud, call) => cloud.instances.describe(instanceIds, call));
    const ofEni = new Map(enis.map(({ eniId, securityGroupIds }) => [eniId, securityGroupIds]));
    const ofInstance = new Map(instances.map(({ instanceId, securityGroupIds }) => [instanceId, securityGroupIds]));
    const ofBalancers = balancers.flatMap(({ balancer }) => balancer.securityGroupIds);
    const ids = [...new Set([...ofBalancers, ...[...ofEni.values(), ...ofInstance.values()].flat()])];
    const rules = await Promise.all(
      ids
        .slice(0, MAX_GROUPS)
        .map(async (id) => [id, await read((cloud, call) => cloud.securityGroups.ingress(id, call))] as const),
    );
    return known({ ofEni, ofInstance, instanceOf, rules: new Map(rules) });
  });
  if (facts.kind === 'known') return facts;
  const next = 'grant vpc:DescribeSecurityGroupPolicies, vpc:DescribeNetworkInterfaces and cvm:DescribeInstances';
  return unknown(`security groups were not read: ${facts.why}`, next);
}

/** The instance behind each address: of the Node itself, or of the Node that a Pod's own network leads through. */
function findInstances(targets: readonly { readonly ip: string }[], cluster: Pick<LbFacts, 'nodes' | 'pods'>) {
  const owners = findOwners(cluster);
  const instances = new Map(
    (ifKnown(cluster.nodes) ?? []).map((node) => {
      const { name, providerId } = readCloudNode(node);
      return [name, providerId.kind === 'instance' ? providerId.instanceId : undefined];
    }),
  );
  return new Map(
    targets.flatMap(({ ip }): readonly (readonly [string, string])[] => {
      const instanceId = instances.get(owners.get(ip)?.node ?? '');
      return instanceId === undefined ? [] : [[ip, instanceId]];
    }),
  );
}
