import { known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { listPages } from '../../../kube/list-pages.ts';
import {
  EIP_CLAIMS,
  NODE_ENI_CONFIGS,
  NODES,
  PODS,
  VPC_ENIS,
  VPC_IP_CLAIMS,
  VPC_IPS,
} from '../../../kube/resource-types.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { decodeClaim, decodeEip, decodeNec, decodeNode, decodePod, decodeVeni, decodeVip } from './decode-objects.ts';

/** What reading the cluster needs. */
export type ClusterReader = {
  readonly client: Pick<KubeClient, 'listPage'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly signal: AbortSignal;
  /** Called with the number of objects of a resource that were read so far. */
  readonly onProgress: (plural: string, count: number) => void;
};

/** A list that only some views need. */
export type ClusterResource = 'nodes' | 'pods' | 'vips' | 'claims' | 'venis' | 'eips';

/** How often a list is read again from the start when its continue token has expired. */
const TRIES = 3;

/**
 * Lists the NodeENIConfigs and the other resources that a view needs, page by page. It keeps a few hundred bytes of
 * each object. All resources are listed at the same time, so that their states belong together.
 * @throws UserError NO_CLUSTER; FORBIDDEN when even the NodeENIConfigs cannot be read
 */
export async function readCluster(
  reader: ClusterReader,
  resources: readonly ClusterResource[],
): Promise<Omit<ClusterFacts, 'cloud'>> {
  const takenAtMs = reader.clock.nowMs();
  const read = <T>(resource: ClusterResource, type: ResourceType, decode: (object: KubeObject) => T | undefined) =>
    resources.includes(resource) ? readList(reader, type, decode) : NOT_NEEDED;
  const [necs, nodes, pods, vips, claims, venis, eips] = await Promise.all([
    readList(reader, NODE_ENI_CONFIGS, decodeNec),
    read('nodes', NODES, decodeNode),
    read('pods', PODS, decodePod),
    read('vips', VPC_IPS, decodeVip),
    read('claims', VPC_IP_CLAIMS, decodeClaim),
    read('venis', VPC_ENIS, decodeVeni),
    read('eips', EIP_CLAIMS, decodeEip),
  ]);
  // No view works without NodeENIConfigs. For other resources each view reports what is missing.
  if (necs.kind === 'unknown') throw new UserError('FORBIDDEN', necs.why, necs.next);
  return { takenAtMs, necs: necs.value, nodes, pods, vips, claims, venis, eips };
}

const NOT_NEEDED = unknown('it was not read: this view does not need it', '');

/** Lists a resource page by page, and keeps of each object what `decode` returns. @throws UserError NO_CLUSTER, FORBIDDEN */
export async function readList<T>(
  reader: Omit<ClusterReader, 'clock'>,
  type: ResourceType,
  decode: (object: KubeObject) => T | undefined,
): Promise<Known<readonly T[]>> {
  for (let tries = 1; ; tries++) {
    try {
      return known(await readPages(reader, type, decode));
    } catch (error) {
      if (isKubeError(error, 'EXPIRED') && tries < TRIES) continue;
      return whyNot(error, type);
    }
  }
}

async function readPages<T>(
  { client, signal, onProgress }: Omit<ClusterReader, 'clock'>,
  type: ResourceType,
  decode: (object: KubeObject) => T | undefined,
): Promise<readonly T[]> {
  const objects: T[] = [];
  let count = 0;
  for await (const { items } of listPages(client, type, {}, signal)) {
    for (const object of items) {
      const decoded = decode(object);
      if (decoded !== undefined) objects.push(decoded);
    }
    count += items.length;
    onProgress(type.plural, count);
  }
  return objects;
}

/**
 * Returns the reason why a list cannot be read: permission or resource is missing. Other errors end the command.
 * @throws UserError
 */
function whyNot(error: unknown, type: ResourceType): Known<never> {
  const resource = type.group === '' ? type.plural : `${type.plural}.${type.group}`;
  if (isKubeError(error, 'FORBIDDEN')) {
    const next = `kubectl auth can-i list ${resource} -A; ClusterRole tke-eni-viewer has the right`;
    return unknown(`may not list ${resource}`, next);
  }
  if (isKubeError(error, 'NOT_FOUND')) {
    return unknown(`the cluster has no ${resource}`, 'is tke-eni-ipamd installed? It makes them at its start');
  }
  if (isKubeError(error)) {
    const code = error.code === 'UNAUTHORIZED' ? 'FORBIDDEN' : 'NO_CLUSTER';
    throw new UserError(code, error.message, 'look at --kubeconfig and its credentials', { cause: error });
  }
  throw error;
}
