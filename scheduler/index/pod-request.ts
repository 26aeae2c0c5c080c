import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE } from '../../crd/names.ts';
import { hasPodEnded, readPodIps } from '../../crd/pod-fields.ts';
import { type Annotations, readPodNetworkRequest } from '../../crd/pod-network-request.ts';
import { recordOf, recordsOf, textOf } from '../../runtime/json.ts';

/** What one Pod requests of a node, of the resources that this system provides. */
export type PodRequest = {
  /** `namespace/name`; its VpcIPClaim has the same. */
  readonly key: string;
  readonly uid: string;
  /** Empty while the Pod is not bound. */
  readonly nodeName: string;
  /** Of its PriorityClass, as admission has written it; 0 without one. */
  readonly priority: number;
  /** Addresses on shared ENIs. */
  readonly routeIps: number;
  /** Exclusive ENIs. */
  readonly exclusiveEnis: number;
  /** Elastic public addresses. */
  readonly eips: number;
  /** True when its address, or its exclusive ENI, is static: the next Pod of the same name gets it again. */
  readonly isStatic: boolean;
  /** The address that the Pod requests. */
  readonly nominatedIp?: string;
  /** The only subnets that the Pod accepts. */
  readonly nominatedSubnetIds?: readonly string[];
  /** Its addresses, the cluster's first address family first; empty until its sandbox has one. */
  readonly ips: readonly string[];
};

/** Texts that are in memory already. Without them each of a hundred thousand Pods has copies of its own. */
export type SharedTexts = {
  /** `namespace/name` of the object. */
  readonly key: string;
  /** Returns the name of a node as the index has it. */
  readonly nodeNameOf: (name: string) => string;
};

/** Upper bound of one resource. A larger number excludes every node anyway, and with the bound no sum overflows. */
const MAX_COUNT = 1_000_000;

/**
 * Reads what a Pod requests; undefined for a Pod that requests nothing of this system, neither by resources nor by
 * annotations, and for a Pod that has ended. Malformed values read as absent: the API server has validated the Pod
 * before.
 * @param shared texts that the answer shares
 */
export function readPodRequest(
  object: Readonly<Record<string, unknown>>,
  shared?: SharedTexts,
): PodRequest | undefined {
  const metadata = recordOf(object['metadata']);
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  if (spec['hostNetwork'] === true || hasPodEnded(status)) return undefined;
  const { nodeNameOf = unchanged } = shared ?? {};
  const { request } = readPodNetworkRequest(annotationsOf(metadata['annotations']));
  const resources = resourcesOf(spec);
  const isNamed = resources.routeIps === 0 && resources.exclusiveEnis === 0;
  const routeIps = isNamed && request.mode === 'route-eni' ? 1 : resources.routeIps;
  const exclusiveEnis = isNamed && request.mode === 'direct-eni' ? 1 : resources.exclusiveEnis;
  const eips = resources.eips === 0 && request.eip !== undefined ? 1 : resources.eips;
  if (routeIps === 0 && exclusiveEnis === 0 && eips === 0) return undefined;
  return {
    key: shared?.key ?? `${textOf(metadata['namespace'])}/${textOf(metadata['name'])}`,
    uid: textOf(metadata['uid']),
    nodeName: nodeNameOf(textOf(spec['nodeName'])),
    priority: typeof spec['priority'] === 'number' ? spec['priority'] : 0,
    routeIps,
    exclusiveEnis,
    eips,
    isStatic: request.isStatic && (routeIps > 0 || exclusiveEnis > 0),
    ...(request.nominatedIp === undefined ? {} : { nominatedIp: request.nominatedIp }),
    ...(request.nominatedSubnetIds === undefined ? {} : { nominatedSubnetIds: request.nominatedSubnetIds }),
    ips: readPodIps(status),
  };
}

function unchanged(name: string): string {
  return name;
}

type Resources = Pick<PodRequest, 'routeIps' | 'exclusiveEnis' | 'eips'>;

/** Sums the containers and takes the maximum with each init container, as Kubernetes does. */
function resourcesOf(spec: Readonly<Record<string, unknown>>): Resources {
  const containers = recordsOf(spec['containers']).map(containerResources);
  const inits = recordsOf(spec['initContainers']).map(containerResources);
  const totalOf = (name: keyof Resources): number => {
    const sum = containers.reduce((total, one) => total + one[name], 0);
    return Math.min(MAX_COUNT, Math.max(sum, ...inits.map((one) => one[name])));
  };
  return { routeIps: totalOf('routeIps'), exclusiveEnis: totalOf('exclusiveEnis'), eips: totalOf('eips') };
}

function containerResources(container: Readonly<Record<string, unknown>>): Resources {
  const resources = recordOf(container['resources']);
  // For an extended resource the API server has set both to the same value.
  const quantities = { ...recordOf(resources['limits']), ...recordOf(resources['requests']) };
  return {
    routeIps: countOf(quantities[ENI_IP_RESOURCE]),
    exclusiveEnis: countOf(quantities[DIRECT_ENI_RESOURCE]),
    eips: countOf(quantities[EIP_RESOURCE]),
  };
}

const POWERS: Readonly<Record<string, number>> = { '': 1, k: 1e3, M: 1e6 };

/** Parses a quantity. An extended resource is a whole number: `1`, "1", or, rarely, "1k". */
function countOf(value: unknown): number {
  const [, digits = '0', unit = ''] = /^(\d{1,9})([kM]?)$/.exec(String(value ?? '0')) ?? [];
  return Math.min(MAX_COUNT, Number(digits) * (POWERS[unit] ?? 1));
}

function annotationsOf(value: unknown): Annotations {
  const texts = Object.entries(recordOf(value)).filter(([, text]) => typeof text === 'string');
  return Object.fromEntries(texts) as Annotations;
}
