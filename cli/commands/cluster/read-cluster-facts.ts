import type { Eni, EniQuery, EniSweep } from '../../../cloud/cloud.ts';
import type { EniQuota } from '../../../cloud/eni-quotas.ts';
import { CLUSTER_TAG } from '../../../crd/cloud-tags.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { type CloudLocation, type CloudReader, openCloudReader } from '../../command/open-cloud-reader.ts';
import { orReason } from '../../command/or-reason.ts';
import type { Progress } from '../../output/progress.ts';
import type { ClusterArgs } from './arguments.ts';
import type { CloudFacts, ClusterFacts, ClusterNec } from './cluster-facts.ts';
import { type ClusterResource, readCluster } from './read-cluster.ts';

/** Reads the cluster once, and then the cloud where it is requested. @throws UserError NO_CLUSTER, FORBIDDEN */
export async function readClusterFacts(
  args: Pick<ClusterArgs, 'cloud' | 'region' | 'endpoint' | 'cluster-id'>,
  context: CommandContext,
  client: Pick<KubeClient, 'listPage'>,
  progress: Progress,
  resources: readonly ClusterResource[],
): Promise<ClusterFacts> {
  const counts = new Map<string, number>();
  const onProgress = (plural: string, count: number): void => {
    counts.set(plural, count);
    progress.show([...counts].map(([name, read]) => `${read} ${name}`).join(', '));
  };
  const facts = await readCluster({ client, clock: context.clock, signal: context.signal, onProgress }, resources);
  if (!args.cloud) return { ...facts, cloud: undefined };
  progress.show('asking the cloud');
  const location = { region: args.region, endpoint: args.endpoint };
  const cloud = await orReason(async () => known(await readCloudFacts(context, location, facts, args['cluster-id'])));
  return { ...facts, cloud };
}

/**
 * Asks the cloud for the quota of ENIs of the cluster's VPC. Where it does not answer, or the VPC is not known, the
 * result contains the reason instead.
 */
export async function readEniQuota(
  context: Pick<CommandContext, 'env' | 'clock' | 'signal'>,
  location: CloudLocation,
  necs: readonly ClusterNec[],
): Promise<Known<EniQuota>> {
  const vpcs = new Set(necs.flatMap(({ status }) => status.vpcID ?? []));
  const [vpcId, ...others] = vpcs;
  const next = 'look at the quotas of the VPC in the console';
  if (vpcId === undefined || others.length > 0)
    return unknown(`the quota of ENIs: the NodeENIConfigs name ${vpcs.size} VPCs`, next);
  return await orReason(async () => {
    const reader = await openCloudReader(context, location);
    const quota = await reader.read((cloud, call) => cloud.eniQuotas.ofVpc(vpcId, call));
    return quota === undefined ? unknown(`the cloud does not tell the quota of ENIs of ${vpcId}`, next) : known(quota);
  });
}

/** Number of ENIs that are read to find the cluster id; an ENI that was created by hand may lack the tag. */
const SAMPLES = 20;

/**
 * Reads the ENIs of the cluster, by their tag and by the ids in its objects, and their subnets. Changes nothing in the
 * cloud. @throws UserError NO_CLOUD
 */
async function readCloudFacts(
  context: Pick<CommandContext, 'env' | 'clock' | 'signal'>,
  location: CloudLocation,
  { necs, venis }: Pick<ClusterFacts, 'necs' | 'venis'>,
  requestedId: string | undefined,
): Promise<CloudFacts> {
  const reader = await openCloudReader(context, location);
  const infos = necs.flatMap(({ status }) => status.eniInfos ?? []);
  const named = [...infos.map(({ eniID }) => eniID), ...(ifKnown(venis) ?? []).map(({ eniId }) => eniId)];
  const ids = [...new Set(named.filter((id) => id !== ''))];
  const clusterId = requestedId ?? (await detectClusterId(reader, ids.slice(0, SAMPLES)));
  const sweep = clusterId === undefined ? NOTHING : await sweepByTag(reader, clusterId);
  const byId = new Map(sweep.enis.map((eni) => [eni.eniId, eni]));
  // Read ENIs without our tags, and those that an inconsistent sweep has missed, by their ids.
  const rest = ids.filter((id) => !byId.has(id));
  for (const eni of await describe(reader, rest)) byId.set(eni.eniId, eni);
  const subnetIds = [
    ...infos.flatMap(({ subnetID }) => subnetID ?? []),
    ...[...byId.values()].map(({ subnetId }) => subnetId),
  ];
  const unique = [...new Set(subnetIds)];
  const subnets = unique.length === 0 ? [] : await reader.read((cloud, call) => cloud.subnets.describe(unique, call));
  return { clusterId, enis: [...byId.values()], isConsistent: sweep.isConsistent, subnets };
}

const NOTHING: EniSweep = { enis: [], isConsistent: true };

/** Returns the cluster id that most of the ENIs carry as a tag; undefined when none carries one. */
async function detectClusterId(reader: CloudReader, ids: readonly string[]): Promise<string | undefined> {
  const counts = new Map<string, number>();
  for (const { tags } of await describe(reader, ids)) {
    const id = tags[CLUSTER_TAG];
    if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

async function sweepByTag(reader: CloudReader, value: string): Promise<EniSweep> {
  const query: EniQuery = { tag: { key: CLUSTER_TAG, value } };
  return reader.read((cloud, call) => cloud.enis.sweep(query, call));
}

async function describe(reader: CloudReader, ids: readonly string[]): Promise<readonly Eni[]> {
  return ids.length === 0 ? [] : reader.read((cloud, call) => cloud.enis.describe(ids, call));
}
