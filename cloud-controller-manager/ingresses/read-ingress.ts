import { INGRESS_FINALIZER } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import {
  ConfigError,
  type Decoder,
  decodeOrThrow,
  describeValue,
  Faults,
  integer,
  isRecord,
  list,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../../runtime/decode.ts';
import { recordOf, recordsOf, textOf } from '../../runtime/json.ts';
import { limitText } from '../../runtime/limit-text.ts';
import type { BalancerOwner } from '../balancers/balancer-owner.ts';
import { refuseTooLarge } from '../balancers/owner-bounds.ts';
import { MAX_RULES_OF_PLAN } from '../balancers/plan-bound.ts';

/** What decides whether an Ingress has a load balancer of ours. It is read of any object, whatever else is wrong with it. */
export type IngressHead = BalancerOwner & {
  readonly kind: 'ingress';
  /** `spec.ingressClassName`; absent: none. */
  readonly className?: string;
  readonly isLeaving: boolean;
  /** Time of creation, RFC 3339 in UTC: texts are in the order of times. */
  readonly createdAt: string;
  /** `status.loadBalancer.ingress`: addresses and names. */
  readonly addresses: readonly { readonly ip?: string; readonly hostname?: string }[];
};

/** The spec of an Ingress. */
export type IngressSpec = {
  readonly defaultBackend?: RuleBackend;
  readonly rules: readonly PathRule[];
  /** Hosts of rules without paths: all their requests are for the default backend. */
  readonly bareHosts: readonly string[];
  readonly tls: readonly TlsEntry[];
  /** Paths, and a default backend, that lead to another object than a Service; absent: none. */
  readonly unserved?: readonly UnservedPath[];
};

/** A path whose backend is a `resource`. */
type UnservedPath = {
  /** For people: `host "www.example.com" path "/static"`, or `defaultBackend`. */
  readonly place: string;
  /** Kind of the object, as a text of any user. */
  readonly kind: string;
};

/** A path of a host, and its backend. */
export type PathRule = {
  /** '' for requests to the address itself. */
  readonly host: string;
  readonly path: string;
  readonly pathType: PathType;
  readonly backend: RuleBackend;
};

/** How a path is compared with that of a request. */
export type PathType = 'Exact' | 'Prefix' | 'ImplementationSpecific';

/** A port of a Service of the namespace, by number or by name. */
export type RuleBackend = { readonly service: string; readonly port: number | string };

/** The certificate of hosts. */
export type TlsEntry = {
  /** None: for all hosts that have no entry of their own. */
  readonly hosts: readonly string[];
  /** '' when the entry names no Secret. */
  readonly secretName: string;
};

const MAX_PORT = 65_535;
/** A listener has 50 rules unless the quota is raised. */
const MAX_ENTRIES = 1_000;
const MAX_ADDRESSES = 100;
/** Characters of a namespace, a slash and a name, as the API server takes them. */
const MAX_KEY = 63 + 1 + 253;
const MAX_TEXT = 1_024;

/** Reads the head of an Ingress; accepts any shape. */
export function readIngressHead(object: KubeObject): IngressHead {
  const { name, namespace = '', uid = '', resourceVersion = '', finalizers = [] } = object.metadata;
  const { annotations = {}, deletionTimestamp, creationTimestamp = '' } = object.metadata;
  const className = textOf(recordOf(object['spec'])['ingressClassName']);
  const addresses = recordsOf(recordOf(recordOf(object['status'])['loadBalancer'])['ingress']);
  return {
    kind: 'ingress',
    key: `${namespace}/${name}`,
    namespace,
    name,
    uid,
    resourceVersion,
    ...(className === '' ? {} : { className }),
    isLeaving: deletionTimestamp !== undefined,
    hasFinalizer: finalizers.includes(INGRESS_FINALIZER),
    annotations,
    createdAt: creationTimestamp,
    addresses: addresses.slice(0, MAX_ADDRESSES).flatMap(({ ip, hostname }): IngressHead['addresses'] => {
      if (textOf(ip) !== '') return [{ ip: textOf(ip) }];
      return textOf(hostname) === '' ? [] : [{ hostname: textOf(hostname) }];
    }),
  };
}

/** What was read: an object never changes, and all that depends on an Ingress asks for its spec. */
const READ = new WeakMap<KubeObject, IngressSpec | ConfigError>();

/** Reads the spec of an Ingress. @throws ConfigError that names each bad field */
export function readIngressSpec(object: KubeObject): IngressSpec {
  const read = READ.get(object) ?? tryReading(object);
  READ.set(object, read);
  if (read instanceof ConfigError) throw read;
  return read;
}

function tryReading(object: KubeObject): IngressSpec | ConfigError {
  try {
    return decodeSpec(object);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

function decodeSpec(object: KubeObject): IngressSpec {
  const { name, namespace = '' } = object.metadata;
  const key = limitText(`${namespace}/${name}`, MAX_KEY);
  refuseTooLarge(object, `the Ingress ${key}`);
  boundLengths(object['spec'], key);
  const wire = decodeOrThrow(SPEC, object['spec'] ?? {}, `spec of the Ingress ${key}`);
  const rules = wire.rules ?? [];
  const unserved: UnservedPath[] = [];
  const serviceOf = (its: WireBackend | undefined, place: string): RuleBackend | undefined => {
    if (its === undefined || 'service' in its) return its;
    unserved.push({ place, kind: its.kind });
    return undefined;
  };
  const defaultBackend = serviceOf(wire.defaultBackend, 'defaultBackend');
  const paths = rules.flatMap(({ host = '', http }) =>
    (http?.paths ?? []).flatMap(({ path = '', pathType, backend: its }): readonly PathRule[] => {
      const served = serviceOf(its, `host ${describeValue(host)} path ${describeValue(path)}`);
      return served === undefined ? [] : [{ host, path: path === '' ? '/' : path, pathType, backend: served }];
    }),
  );
  return {
    ...(defaultBackend === undefined ? {} : { defaultBackend }),
    ...(unserved.length === 0 ? {} : { unserved }),
    rules: paths,
    bareHosts: rules.flatMap(({ host = '', http }) => ((http?.paths ?? []).length === 0 ? [host] : [])),
    tls: (wire.tls ?? []).map(({ hosts = [], secretName = '' }) => ({ hosts, secretName })),
  };
}

/** A backend as it is written: a Service, or another object. */
type WireBackend = RuleBackend | { readonly kind: string };

/** Refuses more paths and hosts than are planned, before each is decoded. @throws ConfigError */
function boundLengths(wire: unknown, key: string): void {
  const spec = recordOf(wire);
  const faults = new Faults();
  const check = (path: string, lengths: readonly number[]): void => {
    const count = lengths.reduce((one, other) => one + other, 0);
    if (count <= MAX_RULES_OF_PLAN) return;
    faults.add(path, `at most ${MAX_RULES_OF_PLAN} together: divide them between several Ingresses`, count);
  };
  const paths = recordsOf(spec['rules']).map(({ http }) => lengthOf(recordOf(http)['paths']));
  check('rules[].http.paths', paths);
  const hosts = recordsOf(spec['tls']).map((one) => lengthOf(one['hosts']));
  check('tls[].hosts', hosts);
  if (faults.list.length > 0) throw new ConfigError(`spec of the Ingress ${key}`, faults.list);
}

function lengthOf(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

/** Reads a backend of `networking.k8s.io/v1`. */
const backend: Decoder<WireBackend> = (value, path, faults) => {
  if (isRecord(value) && isRecord(value['resource'])) return { kind: textOf(value['resource']['kind']) };
  const wire = BACKEND(value, path, faults);
  if (wire === undefined) return undefined;
  const { name, number } = wire.service.port;
  if ((name === undefined) !== (number === undefined)) return { service: wire.service.name, port: number ?? name ?? 0 };
  faults.add(`${path}.service.port`, 'either a name or a number', wire.service.port);
  return undefined;
};

const SHORT = text(new RegExp(`^[\\s\\S]{0,${MAX_TEXT}}$`), `a text of at most ${MAX_TEXT} characters`);
const BACKEND = record(
  {
    service: required(
      record(
        {
          name: required(SHORT),
          port: required(record({ name: optional(SHORT), number: optional(integer(1, MAX_PORT)) }, 'ignore')),
        },
        'ignore',
      ),
    ),
  },
  'ignore',
);

const PATH = record(
  {
    path: optional(SHORT),
    pathType: required(oneOf(['Exact', 'Prefix', 'ImplementationSpecific'])),
    backend: required(backend),
  },
  'ignore',
);

const SPEC = record(
  {
    defaultBackend: optional(backend),
    rules: optional(
      bounded(
        record(
          { host: optional(SHORT), http: optional(record({ paths: required(bounded(PATH)) }, 'ignore')) },
          'ignore',
        ),
      ),
    ),
    tls: optional(bounded(record({ hosts: optional(bounded(SHORT)), secretName: optional(SHORT) }, 'ignore'))),
  },
  'ignore',
);

function bounded<T>(item: Decoder<T>): Decoder<readonly T[]> {
  const items = list(item);
  return (value, path, faults) => {
    if (!Array.isArray(value) || value.length <= MAX_ENTRIES) return items(value, path, faults);
    faults.add(path, `at most ${MAX_ENTRIES} entries`, value.length);
    return undefined;
  };
}
