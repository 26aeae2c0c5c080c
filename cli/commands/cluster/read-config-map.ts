import { known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';

/**
 * Reads a ConfigMap of ipamd, in whichever namespace it is; undefined where there is none. Never throws for an error of
 * the API server: the result then says that `what` cannot be read.
 */
export async function readConfigMap(
  client: Pick<KubeClient, 'listPage'>,
  { name, what }: { readonly name: string; readonly what: string },
  signal: AbortSignal,
): Promise<Known<unknown>> {
  try {
    const query = { fieldSelector: `metadata.name=${name}`, limit: 2 };
    const [map] = (await client.listPage(CONFIG_MAPS, query, signal)).items;
    return known(map === undefined ? undefined : (map['data'] ?? {}));
  } catch (error) {
    if (!isKubeError(error)) throw error;
    const next = `use ClusterRole tke-eni-viewer, which may read ConfigMap ${name}`;
    return unknown(`${what} cannot be read: ${error.message}`, next);
  }
}
