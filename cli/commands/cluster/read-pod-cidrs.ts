import { POD_CIDRS_CONFIG_MAP, type PodCidrRecord, readPodCidrRecord } from '../../../crd/pod-cidr-record.ts';
import { known } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { readConfigMap } from './read-config-map.ts';

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
