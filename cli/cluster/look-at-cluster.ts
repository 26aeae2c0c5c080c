import type { KubeClient } from '../../kube/kube-client.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command.ts';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';
import type { Progress } from '../output/progress.ts';
import type { CloudFacts, ClusterFacts } from './cluster-facts.ts';
import type { ClusterArgs } from './command.ts';
import { readCloudFacts } from './read-cloud-facts.ts';
import { type ClusterPart, readCluster } from './read-cluster.ts';

/** Looks at the cluster once, and at the cloud after it where that is asked for. @throws CliError NO_CLUSTER, FORBIDDEN */
export async function lookAtCluster(
  args: Pick<ClusterArgs, 'cloud' | 'region' | 'endpoint' | 'cluster-id'>,
  context: CommandContext,
  client: Pick<KubeClient, 'listPage'>,
  progress: Progress,
  parts: readonly ClusterPart[],
): Promise<ClusterFacts> {
  const counts = new Map<string, number>();
  const onProgress = (plural: string, count: number): void => {
    counts.set(plural, count);
    progress.show([...counts].map(([name, read]) => `${read} ${name}`).join(', '));
  };
  const facts = await readCluster({ client, clock: context.clock, signal: context.signal, onProgress }, parts);
  if (!args.cloud) return { ...facts, cloud: undefined };
  progress.show('asking the cloud');
  return { ...facts, cloud: await askCloud(args, context, facts) };
}

/** A cloud that does not answer costs what it would have told. */
async function askCloud(
  args: Pick<ClusterArgs, 'region' | 'endpoint' | 'cluster-id'>,
  context: CommandContext,
  facts: Pick<ClusterFacts, 'necs' | 'venis'>,
): Promise<Known<CloudFacts>> {
  try {
    const place = { region: args.region, endpoint: args.endpoint };
    return known(await readCloudFacts(context, place, facts, args['cluster-id']));
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'NO_CLOUD') throw error;
    return unknown(error.message, error.next);
  }
}
