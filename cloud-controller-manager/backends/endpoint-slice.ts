import { isIPv4 } from 'node:net';
import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf, recordsOf, textOf } from '../../runtime/json.ts';

/** What the service controller caches of an EndpointSlice. */
export type EndpointSlice = {
  /** `namespace/name`. */
  readonly service: string;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly Endpoint[];
};

/** A port of all endpoints of a slice: target ports with names are resolved in it. */
type SlicePort = {
  /** That of the port of the Service; '' when its only port has none. */
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
};

/** An address behind a Service. */
export type Endpoint = {
  readonly ip: string;
  /** Also true when nothing is said of it. */
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /** `namespace/name` of its Pod; absent: something else has the address. */
  readonly pod?: string;
  /** uid of this Pod; absent: nothing is said of it. */
  readonly podUid?: string;
};

/** Names of the indexes of slices. */
export const SLICES_BY = { service: 'service', pod: 'pod' } as const;

/** Indexes of the informer of slices. */
export const SLICE_INDEXES = {
  [SLICES_BY.service]: ({ service }: EndpointSlice): readonly string[] => [service],
  [SLICES_BY.pod]: ({ endpoints }: EndpointSlice): readonly string[] => [
    ...new Set(endpoints.flatMap(({ pod }) => pod ?? [])),
  ],
};

/** What is kept of slices: the API server takes 1,000 endpoints each, and does not check the lengths of names. */
export const SLICE_BOUNDS = { objectBytes: 1_048_576, namespaceBytes: 64 * 1_048_576, smallBytes: 65_536 };

const SERVICE_LABEL = 'kubernetes.io/service-name';

/** Reads what is cached of a slice; undefined for one of no Service, or of another family than IPv4. Accepts any shape. */
export function decodeEndpointSlice(object: KubeObject): EndpointSlice | undefined {
  const { namespace = '', labels = {} } = object.metadata;
  const service = labels[SERVICE_LABEL];
  if (service === undefined || object['addressType'] !== 'IPv4') return undefined;
  return {
    service: `${namespace}/${service}`,
    ports: recordsOf(object['ports']).flatMap(({ name, protocol, port }) =>
      typeof port === 'number' ? [{ name: textOf(name), protocol: textOf(protocol) || 'TCP', port }] : [],
    ),
    endpoints: recordsOf(object['endpoints']).flatMap((wire) => endpointOf(wire, namespace)),
  };
}

function endpointOf(wire: Readonly<Record<string, unknown>>, namespace: string): readonly Endpoint[] {
  // Consumers must use the first address alone.
  const ip: unknown = Array.isArray(wire['addresses']) ? wire['addresses'][0] : undefined;
  if (typeof ip !== 'string' || !isIPv4(ip)) return [];
  const { ready, terminating } = recordOf(wire['conditions']);
  const { kind, name, uid } = recordOf(wire['targetRef']);
  const isPod = kind === 'Pod' && typeof name === 'string';
  const podUid = typeof uid === 'string' && uid !== '' ? { podUid: uid } : {};
  const pod = isPod ? { pod: `${namespace}/${name}`, ...podUid } : {};
  return [{ ip, isReady: ready !== false, isTerminating: terminating === true, ...pod }];
}
