import { SUBNETS_SOURCE_ANNOTATION } from '../../../crd/names.ts';
import { readSubnetSupply, SUBNETS_CONFIG_MAP, type SubnetSupply } from '../../../crd/subnet-supply.ts';
import { known } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { isRecord } from '../../../runtime/decode.ts';
import { readConfigMap } from './read-config-map.ts';

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
