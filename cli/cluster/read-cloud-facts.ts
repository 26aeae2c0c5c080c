import type { Eni, EniQuery, EniSweep } from '../../cloud/cloud.ts';
import { type CloudPlace, type CloudReader, openCloudReader } from '../against/open-cloud.ts';
import type { CommandContext } from '../command.ts';
import { ifKnown } from '../node/known.ts';
import type { CloudFacts, ClusterFacts } from './cluster-facts.ts';

/** The tag that ipamd gives each ENI that it makes: the cluster's id. */
export const CLUSTER_TAG = 'tke-clusterId';

/** Some ENIs are enough to learn the id from; one that was made by hand may not carry it. */
const SAMPLES = 20;

/**
 * Describes the ENIs of the cluster, by their tag and by the ids that its objects name, and the subnets that they are
 * in. Changes nothing in the cloud. @throws CliError NO_CLOUD
 */
export async function readCloudFacts(
  context: Pick<CommandContext, 'env' | 'clock' | 'signal'>,
  place: CloudPlace,
  { necs, venis }: Pick<ClusterFacts, 'necs' | 'venis'>,
  givenId: string | undefined,
): Promise<CloudFacts> {
  const reader = await openCloudReader(context, place);
  const infos = necs.flatMap(({ status }) => status.eniInfos ?? []);
  const named = [...infos.map(({ eniID }) => eniID), ...(ifKnown(venis) ?? []).map(({ eniId }) => eniId)];
  const ids = [...new Set(named.filter((id) => id !== ''))];
  const clusterId = givenId ?? (await learnClusterId(reader, ids.slice(0, SAMPLES)));
  const sweep = clusterId === undefined ? NOTHING : await sweepByTag(reader, clusterId);
  const seen = new Map(sweep.enis.map((eni) => [eni.eniId, eni]));
  // Those without our tags, and those that a sweep in motion left out.
  const rest = ids.filter((id) => !seen.has(id));
  for (const eni of await describe(reader, rest)) seen.set(eni.eniId, eni);
  const subnetIds = [
    ...infos.flatMap(({ subnetID }) => subnetID ?? []),
    ...[...seen.values()].map(({ subnetId }) => subnetId),
  ];
  const unique = [...new Set(subnetIds)];
  const subnets = unique.length === 0 ? [] : await reader.read((cloud, call) => cloud.subnets.describe(unique, call));
  return { clusterId, enis: [...seen.values()], isConsistent: sweep.isConsistent, subnets };
}

const NOTHING: EniSweep = { enis: [], isConsistent: true };

/** The id that most of them carry; undefined when none carries any. */
async function learnClusterId(reader: CloudReader, ids: readonly string[]): Promise<string | undefined> {
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
