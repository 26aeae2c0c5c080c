import type { CallContext } from '../../../cloud/cloud.ts';
import type { LoadBalancer } from '../../../cloud/load-balancers.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../../crd/cloud-tags.ts';
import type { CloudReader, ReadableCloud } from '../../command/open-cloud-reader.ts';
import type { BalancerFacts, LbCloud } from './lb-facts.ts';

/** What is asked about in the cloud. */
type BalancerQuestion = {
  /** Ids that objects name. */
  readonly ids: readonly string[];
  /** `OWNER_TAG` of those that are asked about, of a cluster; undefined: of all that have one. */
  readonly owners: ((clusterId: string) => readonly string[]) | undefined;
  readonly clusterId: string | undefined;
};

/** Name of the listeners of Services and Ingresses. */
const LISTENER_NAME = /^tke-eni-[0-9a-f]{16}$/;

/** Reads load balancers with all that they have. The id of the cluster is found in their tags. @throws UserError NO_CLOUD */
export async function readBalancers(
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
