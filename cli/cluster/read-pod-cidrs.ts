import { POD_CIDRS_CONFIG_MAP, type PodCidrRecord, readPodCidrRecord } from '../../crd/pod-cidr-record.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';

/**
 * Reads what ipamd records about the podCIDRs that it gives; undefined where it gives none. Never throws for an error of
 * the API server.
 */
export async function readPodCidrs(
  client: Pick<KubeClient, 'listPage'>,
  signal: AbortSignal,
): Promise<Known<PodCidrRecord | undefined>> {
  try {
    const query = { fieldSelector: `metadata.name=${POD_CIDRS_CONFIG_MAP}`, limit: 2 };
    const [map] = (await client.listPage(CONFIG_MAPS, query, signal)).items;
    return known(map === undefined ? undefined : readPodCidrRecord(map['data']));
  } catch (error) {
    if (!isKubeError(error)) throw error;
    const next = `use ClusterRole tke-eni-viewer, which may read ConfigMap ${POD_CIDRS_CONFIG_MAP}`;
    return unknown(`the blocks of podCIDRs cannot be read: ${error.message}`, next);
  }
}
