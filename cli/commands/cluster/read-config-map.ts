import { known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';

/** What is read of a ConfigMap. */
type ConfigMapContent = {
  readonly data: unknown;
  readonly annotations: Readonly<Record<string, string>>;
};

/**
 * Reads a ConfigMap of ipamd, in whichever namespace it is unless one is named; undefined where there is none. Never throws for an error of
 * the API server: the result then says that `what` cannot be read.
 */
export async function readConfigMap(
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
