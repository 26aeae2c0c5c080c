import { BACKEND_READY_GATE, POD_ANNOTATION } from '../../crd/names.ts';
import { hasPodEnded, networkOfPod, readPodIps } from '../../crd/pod-fields.ts';
import { readPodNetworks } from '../../crd/pod-networks.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf, recordsOf, textOf } from '../../runtime/json.ts';

/** What the service controller caches of a Pod; tens of thousands are cached at once. */
export type BackendPod = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly nodeName: string;
  /** Empty until the sandbox has one. */
  readonly ips: readonly string[];
  /** Its deletion was requested. */
  readonly isLeaving: boolean;
  /** What annotation and resources say of its network. `unnamed`: the default of its node. */
  readonly network: PodNetwork;
  readonly areContainersReady: boolean;
  /** Whether its readiness gates are True, but for that of load balancers. */
  readonly areOtherGatesTrue: boolean;
  /** Its readiness gate of load balancers; absent: it has none. */
  readonly gate?: PodGate;
  /** Present while its gate is not True: Services select it by them. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Present while its gate is not True. */
  readonly resourceVersion?: string;
};

type PodNetwork = 'host' | 'eni' | 'bridge' | 'unnamed';

/** The condition of a readiness gate as the Pod has it; '' for what is absent. */
type PodGate = { readonly status: string; readonly reason: string; readonly message: string };

/** Names of the indexes of Pods. */
export const PODS_BY = { gate: 'gate' } as const;
/** Text under which Pods are found whose gate is not True. */
export const PENDING = 'pending';

/** Indexes of the informer of Pods. */
export const BACKEND_POD_INDEXES = {
  [PODS_BY.gate]: ({ labels }: BackendPod): readonly string[] => (labels === undefined ? NONE : [PENDING]),
};

/**
 * What is kept of Pods whose gate is not True, by their labels. One with more is not kept: its gate stays as it is, and it is no
 * target.
 */
export const BACKEND_POD_BOUNDS = { objectBytes: 65_536, namespaceBytes: 16 * 1_048_576, smallBytes: 8_192 };

const NONE: readonly string[] = Object.freeze([]);

/** Reads what is cached of a Pod; undefined for one that has no node yet, or has ended. Accepts any shape. */
export function decodeBackendPod(object: KubeObject): BackendPod | undefined {
  const { name, namespace = '', uid = '', resourceVersion = '', deletionTimestamp } = object.metadata;
  const [spec, status] = [recordOf(object['spec']), recordOf(object['status'])];
  const { nodeName } = spec;
  if (typeof nodeName !== 'string' || nodeName === '' || hasPodEnded(status)) return undefined;
  const conditions = recordsOf(status['conditions']);
  const isTrue = (wanted: unknown): boolean => conditions.find(({ type }) => type === wanted)?.['status'] === 'True';
  const gate = gateOf(conditions.find(({ type }) => type === BACKEND_READY_GATE));
  const gates = recordsOf(spec['readinessGates']).map(({ conditionType }) => conditionType);
  const hasGate = gates.includes(BACKEND_READY_GATE);
  return {
    namespace,
    name,
    uid,
    nodeName,
    ips: readPodIps(status),
    isLeaving: deletionTimestamp !== undefined,
    network: networkOf(object),
    areContainersReady: isTrue('ContainersReady'),
    areOtherGatesTrue: gates.every((type) => type === BACKEND_READY_GATE || isTrue(type)),
    ...(hasGate ? { gate } : {}),
    ...(hasGate && gate.status !== 'True' ? { labels: object.metadata.labels ?? {}, resourceVersion } : {}),
  };
}

function networkOf({ metadata, spec }: KubeObject): PodNetwork {
  if (recordOf(spec)['hostNetwork'] === true) return 'host';
  const name = networkOfPod(readPodNetworks(metadata.annotations?.[POD_ANNOTATION.networks]), spec);
  if (name === undefined) return 'unnamed';
  return name === 'tke-bridge' ? 'bridge' : 'eni';
}

function gateOf(condition: Readonly<Record<string, unknown>> = {}): PodGate {
  const [status, reason, message] = ['status', 'reason', 'message'].map((key) => textOf(condition[key]));
  return { status: status ?? '', reason: reason ?? '', message: message ?? '' };
}
