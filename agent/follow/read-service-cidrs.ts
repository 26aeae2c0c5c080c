import { anyPrefix, familyOf, isPrefix, networkPrefix, prefixLength } from '../../dataplane/ip-prefix.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { ConfigError, optional, record, text } from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';
import { decodeYaml } from '../../runtime/settings/read-yaml.ts';

/** The ranges of Services of a cluster. */
export type ServiceCidrs = {
  /** Canonical, sorted; empty when no source has one. */
  readonly cidrs: readonly string[];
  /** Where they are from, for people; '' when no source has one. */
  readonly source: string;
  /** The source has every range that is in use, so that one it lacks is gone. */
  readonly isComplete: boolean;
  /** Why other sources, or single ranges, gave nothing. */
  readonly problems: readonly string[];
};

/**
 * Reads the ranges of Services. The union of all ServiceCIDR objects counts, a range that is being deleted too: its
 * Services are still there. A server without them is asked for kubeadm's ConfigMap.
 * @throws KubeError when the API server did not answer, so that nothing is known
 */
export async function readServiceCidrs(
  kube: Pick<KubeClient, 'get' | 'listPage'>,
  signal: AbortSignal,
): Promise<ServiceCidrs> {
  const problems: string[] = [];
  for (const { name, isComplete, read } of SOURCES) {
    try {
      const { cidrs, refused } = checkCidrs(await read(kube, signal));
      problems.push(...refused.map((why) => `${name}: ${why}`));
      if (cidrs.length > 0) return { cidrs, source: name, isComplete: isComplete && refused.length === 0, problems };
      problems.push(`${name}: no range`);
    } catch (error) {
      problems.push(`${name}: ${reasonOf(error)}`);
    }
  }
  return { cidrs: [], source: '', isComplete: false, problems };
}

type Source = {
  readonly name: string;
  /** False for the text by which a cluster was made: it does not follow the cluster. */
  readonly isComplete: boolean;
  readonly read: (kube: Pick<KubeClient, 'get' | 'listPage'>, signal: AbortSignal) => Promise<readonly string[]>;
};

const SOURCES: readonly Source[] = [
  ...['v1', 'v1beta1'].map((version) => ({
    name: `ServiceCIDR ${version}`,
    isComplete: true,
    read: async (kube: Pick<KubeClient, 'listPage'>, signal: AbortSignal) => {
      const { items } = await kube.listPage(serviceCidrType(version), { limit: MAX_OBJECTS }, signal);
      return items.flatMap(cidrsOfObject);
    },
  })),
  {
    name: 'ConfigMap kube-system/kubeadm-config',
    isComplete: false,
    read: async (kube, signal) => {
      const object = await kube.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'kubeadm-config' }, signal);
      return object === undefined ? [] : cidrsOfKubeadm(object);
    },
  },
];

/** Most ServiceCIDR objects that are read; clusters have one or two. */
const MAX_OBJECTS = 100;

function serviceCidrType(version: string): ResourceType {
  return { group: 'networking.k8s.io', version, plural: 'servicecidrs', kind: 'ServiceCIDR', isNamespaced: false };
}

function cidrsOfObject({ spec }: KubeObject): readonly string[] {
  const cidrs = recordOf(spec)['cidrs'];
  return Array.isArray(cidrs) ? cidrs.map(String) : [];
}

const decodeClusterConfiguration = record(
  { networking: optional(record({ serviceSubnet: optional(text()) }, 'ignore')) },
  'ignore',
);

function cidrsOfKubeadm({ data }: KubeObject): readonly string[] {
  const configuration = recordOf(data)['ClusterConfiguration'];
  if (typeof configuration !== 'string') return [];
  const { networking } = decodeYaml(configuration, 'ClusterConfiguration', decodeClusterConfiguration);
  return (networking?.serviceSubnet ?? '')
    .split(',')
    .map((cidr) => cidr.trim())
    .filter((cidr) => cidr !== '');
}

/** Shortest prefix of a range: a shorter one would take packets that are for the VPC. */
const MIN_LENGTH = { 4: 8, 6: 32 } as const;

function checkCidrs(found: readonly string[]): {
  readonly cidrs: readonly string[];
  readonly refused: readonly string[];
} {
  const refused: string[] = [];
  const cidrs = new Set<string>();
  for (const cidr of found) {
    if (!isPrefix(cidr)) refused.push(`"${cidr}" is no CIDR`);
    else if (prefixLength(cidr) < MIN_LENGTH[familyOf(cidr)])
      refused.push(
        `${cidr} is refused: a range is /${MIN_LENGTH[familyOf(cidr)]} or longer within ${anyPrefix(familyOf(cidr))}`,
      );
    else cidrs.add(networkPrefix(cidr));
  }
  return { cidrs: [...cidrs].sort(), refused };
}

/** Returns why a source gave nothing. @throws the error when nothing is known. */
function reasonOf(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (isKubeError(error) && (error.code === 'NOT_FOUND' || error.code === 'FORBIDDEN')) {
    return error.code === 'FORBIDDEN' ? 'the role may not read it' : 'the server does not have it';
  }
  throw error;
}
