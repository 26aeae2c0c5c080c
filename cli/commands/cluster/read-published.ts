import { SUBNETS_SOURCE_ANNOTATION } from '../../../crd/names.ts';
import { POD_CIDRS_CONFIG_MAP, type PodCidrRecord, readPodCidrRecord } from '../../../crd/pod-cidr-record.ts';
import { readSubnetSource, renderSubnetSource } from '../../../crd/subnet-source.ts';
import { readSubnetSupply, SUBNETS_CONFIG_MAP, type SubnetSupply } from '../../../crd/subnet-supply.ts';
import { known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import { isRecord } from '../../../runtime/decode.ts';
import type { CommandContext } from '../../command/command.ts';
import type { Progress } from '../../output/progress.ts';

/** What ipamd published about subnets. */
export type SubnetSupplies = {
  readonly bySubnet: ReadonlyMap<string, SubnetSupply>;
  /** Keys with a text that cannot be read. */
  readonly malformed: readonly string[];
  /** Which content of the cluster's ConfigMap it is of; absent: an ipamd before 0.2.0 published it. @see renderSubnetSource */
  readonly source?: string;
};

/**
 * Reads the free addresses of subnets that ipamd publishes; undefined where it has published none. Never throws for an
 * error of the API server.
 */
export async function readSubnetSupplies(
  client: Pick<KubeClient, 'listPage'>,
  signal: AbortSignal,
): Promise<Known<SubnetSupplies | undefined>> {
  const map = { name: SUBNETS_CONFIG_MAP, what: 'the free addresses of subnets' };
  const content = await readConfigMap(client, map, signal);
  if (content.kind === 'unknown') return content;
  const { data, annotations = {} } = content.value ?? {};
  if (!isRecord(data)) return known(undefined);
  const source = annotations[SUBNETS_SOURCE_ANNOTATION];
  const read = Object.entries(data).map(([id, text]) => [id, readSubnetSupply(text)] as const);
  return known({
    bySubnet: new Map(read.flatMap(([id, supply]) => (supply === undefined ? [] : [[id, supply] as const]))),
    malformed: read.flatMap(([id, supply]) => (supply === undefined ? [id] : [])),
    ...(source === undefined ? {} : { source }),
  });
}

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

/**
 * Reads what ipamd records about the podCIDRs that it gives; undefined where it gives none. Never throws for an error of
 * the API server.
 */
export async function readPodCidrs(
  client: Pick<KubeClient, 'listPage'>,
  signal: AbortSignal,
): Promise<Known<PodCidrRecord | undefined>> {
  const map = { name: POD_CIDRS_CONFIG_MAP, what: 'the blocks of podCIDRs' };
  const read = await readConfigMap(client, map, signal);
  return read.kind === 'known' ? known(readPodCidrRecord(read.value?.data)) : read;
}

/** What is read of a ConfigMap. */
type ConfigMapContent = {
  readonly data: unknown;
  readonly annotations: Readonly<Record<string, string>>;
};

/**
 * Reads a ConfigMap of ipamd, in whichever namespace it is unless one is named; undefined where there is none. Never throws for an
 * error of the API server: the result then says that `what` cannot be read.
 */
async function readConfigMap(
  client: Pick<KubeClient, 'listPage'>,
  { name, what, namespace }: { readonly name: string; readonly what: string; readonly namespace?: string },
  signal: AbortSignal,
): Promise<Known<ConfigMapContent | undefined>> {
  try {
    const place = namespace === undefined ? {} : { namespace };
    const query = { ...place, fieldSelector: `metadata.name=${name}`, limit: 2 };
    const [map] = (await client.listPage(CONFIG_MAPS, query, signal)).items;
    if (map === undefined) return known(undefined);
    return known({ data: map['data'] ?? {}, annotations: map.metadata.annotations ?? {} });
  } catch (error) {
    if (!isKubeError(error)) throw error;
    const next = `use ClusterRole tke-eni-viewer, which may read ConfigMap ${name}`;
    return unknown(`${what} cannot be read: ${error.message}`, next);
  }
}
