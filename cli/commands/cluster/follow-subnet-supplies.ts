import { readSubnetSource, renderSubnetSource } from '../../../crd/subnet-source.ts';
import { known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import type { CommandContext } from '../../command/command.ts';
import type { Progress } from '../../output/progress.ts';
import { readConfigMap } from './read-config-map.ts';
import { readSubnetSupplies, type SubnetSupplies } from './read-subnet-supplies.ts';

/** What ipamd published, and whether it is of the ConfigMap as it is now. */
type FollowedSupplies = {
  readonly supplies: Known<SubnetSupplies | undefined>;
  /** Unknown, with the reason, when it may be of an earlier content. */
  readonly isCurrent: Known<true>;
};

/** ipamd publishes a change once it has described the subnets: one call of the cloud. */
const FOLLOW_MS = 10_000;
const STEP_MS = 250;

/**
 * Reads the free addresses of subnets that ipamd published of the cluster's ConfigMap as it is now. After a change it waits
 * for ipamd, 10 s at most. Never throws for an error of the API server.
 */
export async function followSubnetSupplies(
  client: Pick<KubeClient, 'listPage'>,
  { clock, signal, progress }: Pick<CommandContext, 'clock' | 'signal'> & { readonly progress: Progress },
): Promise<FollowedSupplies> {
  const endMs = clock.monotonicMs() + FOLLOW_MS;
  for (;;) {
    const supplies = await readSubnetSupplies(client, signal);
    const source = supplies.kind === 'known' ? supplies.value?.source : undefined;
    const isCurrent = await compareSource(client, source, signal);
    if (isCurrent !== undefined) return { supplies, isCurrent };
    const place = source?.split('@')[0];
    if (clock.monotonicMs() >= endMs) {
      const why = `ConfigMap ${place} has changed and ipamd has not published its subnets: the answer is of its content before`;
      return { supplies, isCurrent: unknown(why, 'does a leader of tke-eni-ipamd run, and does the cloud answer it?') };
    }
    progress.show(`waiting for ipamd to read ConfigMap ${place}`);
    await clock.sleep(STEP_MS, signal);
  }
}

/** Returns undefined when the ConfigMap has another content than the one that was published. */
async function compareSource(
  client: Pick<KubeClient, 'listPage'>,
  source: string | undefined,
  signal: AbortSignal,
): Promise<Known<true> | undefined> {
  const ref = readSubnetSource(source);
  if (ref === undefined) return known(true);
  const map = await readConfigMap(client, { ...ref, what: 'whether the list of subnets was changed' }, signal);
  if (map.kind === 'unknown') return map;
  return renderSubnetSource(ref, map.value?.data) === source ? known(true) : undefined;
}
