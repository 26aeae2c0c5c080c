import { type Decoder, Faults, integer, list, oneOf, optional, record, required, text } from '../../runtime/decode.ts';
import type { Parser } from '../services/annotation-values.ts';
import type { PathType, RuleBackend } from './read-ingress.ts';

/** A rule that an annotation puts on a listener of HTTP or of HTTPS. */
export type MixedRule = {
  readonly host: string;
  readonly path: string;
  /** Absent: that of the same path in the spec. */
  readonly pathType?: PathType;
  readonly backend: RuleBackend;
  /** Where its requests are redirected to: another rule of the Ingress. */
  readonly rewrite?: { readonly port: number; readonly host: string; readonly path: string };
};

/** Ports of the listeners that an Ingress has rules on. */
export type ListenPorts = { readonly HTTP: readonly number[]; readonly HTTPS: readonly number[] };

/** The ports without the annotation. */
export const LISTEN_PORTS: ListenPorts = { HTTP: [80], HTTPS: [443] };

/** A certificate of the cloud for hosts; no hosts: for all that have no other. */
export type CertificateEntry = { readonly hosts: readonly string[]; readonly ids: readonly string[] };

/** Weights of the Pods of StatefulSets. */
export type WeightTable = {
  readonly defaultWeight?: number;
  readonly groups: readonly {
    /** Absent fields fit every rule. */
    readonly key: { readonly proto?: string; readonly port?: number; readonly host?: string; readonly path?: string };
    readonly statefulSets: readonly {
      readonly name: string;
      readonly weights: readonly { readonly weight: number; readonly podIndexes: readonly number[] }[];
    }[];
  }[];
};

const MAX_CHARS = 65_536;
const MAX_PORT = 65_535;
const MAX_WEIGHT = 100;
const MAX_INDEX = 1_000_000;
const MAX_PORTS = 50;

const SHORT = text(/^[\s\S]{0,256}$/, 'a text of at most 256 characters');
const PORT = integer(1, MAX_PORT);
const ID = text(/^[A-Za-z0-9]{8}$/, 'the id of a certificate, eight letters and digits');

/** Older manifests have ports in quotes. */
const SERVICE_PORT: Decoder<number | string> = (value, path, faults) => {
  if (typeof value === 'string' && !/^\d+$/.test(value)) return SHORT(value, path, faults);
  return PORT(typeof value === 'string' ? Number(value) : value, path, faults);
};
const RULE = record(
  {
    host: optional(SHORT),
    path: optional(SHORT),
    pathType: optional(oneOf(['Exact', 'Prefix', 'ImplementationSpecific'])),
    backend: required(record({ serviceName: required(SHORT), servicePort: required(SERVICE_PORT) }, 'reject')),
    rewrite: optional(record({ port: required(PORT), host: optional(SHORT), path: optional(SHORT) }, 'reject')),
  },
  'reject',
);
const LISTEN = record({ HTTP: optional(PORT), HTTPS: optional(PORT) }, 'reject');
const CERTIFICATE = record({ hosts: optional(list(SHORT)), qcloud_cert_id: required(list(ID)) }, 'reject');
const WEIGHT = record(
  { weight: required(integer(0, MAX_WEIGHT)), podIndexes: required(list(integer(0, MAX_INDEX))) },
  'reject',
);
const GROUP = record(
  {
    key: required(
      record(
        {
          proto: optional(oneOf(['HTTP', 'HTTPS'])),
          port: optional(PORT),
          host: optional(SHORT),
          path: optional(SHORT),
        },
        'reject',
      ),
    ),
    statefulSets: required(list(record({ name: required(SHORT), weights: required(list(WEIGHT)) }, 'reject'))),
  },
  'reject',
);
const TABLE = record({ defaultWeight: optional(integer(0, MAX_WEIGHT)), groups: optional(list(GROUP)) }, 'reject');

/** Reads rules of one protocol. */
export const mixedRules: Parser<readonly MixedRule[]> = json(list(RULE), 'a JSON list of rules', (rules) =>
  rules.map(({ host = '', path = '', pathType, backend, rewrite }) => ({
    host,
    path: path === '' ? '/' : path,
    ...(pathType === undefined ? {} : { pathType }),
    backend: { service: backend.serviceName, port: backend.servicePort },
    ...(rewrite === undefined
      ? {}
      : { rewrite: { port: rewrite.port, host: rewrite.host ?? host, path: rewrite.path ?? '/' } }),
  })),
);

/** Reads ports of listeners. */
export const listenPorts: Parser<ListenPorts> = json(
  list(LISTEN),
  'a JSON list such as [{"HTTP":80},{"HTTPS":443}]',
  (all) => {
    const ports = {
      HTTP: all.flatMap(({ HTTP }) => (HTTP === undefined ? [] : [HTTP])),
      HTTPS: all.flatMap(({ HTTPS }) => (HTTPS === undefined ? [] : [HTTPS])),
    };
    const both = [...ports.HTTP, ...ports.HTTPS];
    const isGood = both.length > 0 && both.length <= MAX_PORTS && new Set(both).size === both.length;
    return isGood ? ports : `1 to ${MAX_PORTS} ports, each once`;
  },
);

/** Reads certificates of hosts. */
export const certificateEntries: Parser<readonly CertificateEntry[]> = json(
  list(CERTIFICATE),
  'a JSON list of objects with hosts and qcloud_cert_id',
  (entries) => {
    const isGood = entries.every(({ qcloud_cert_id: ids }) => ids.length === 1 || ids.length === 2);
    if (!isGood) return 'one id of a certificate for hosts, or two: of RSA and of ECC';
    if (entries.some(({ hosts = [] }) => hosts.some((host) => host === '' || /\s/.test(host))))
      return 'hosts that are not empty and have no blanks';
    return entries.map(({ hosts = [], qcloud_cert_id: ids }) => ({ hosts, ids }));
  },
);

/** Reads weights of Pods. */
export const weightTable: Parser<WeightTable> = json(
  TABLE,
  'a JSON object with defaultWeight and groups',
  ({ defaultWeight, groups = [] }) => ({ ...(defaultWeight === undefined ? {} : { defaultWeight }), groups }),
);

/** @param convert returns a text for what was expected instead */
function json<T, R extends object>(
  decoder: Decoder<T>,
  expected: string,
  convert: (value: T) => R | string,
): Parser<R> {
  return (given) => {
    if (given.length > MAX_CHARS) return { kind: 'fault', expected: `at most ${MAX_CHARS} characters` };
    let wire: unknown;
    try {
      wire = JSON.parse(given);
    } catch {
      return { kind: 'fault', expected };
    }
    const faults = new Faults();
    const decoded = decoder(wire, '', faults);
    const [first] = faults.list;
    if (decoded === undefined || first !== undefined) {
      const isWhole = first === undefined || first.path === '';
      return { kind: 'fault', expected: isWhole ? expected : `${expected}, with ${first.path}: ${first.expected}` };
    }
    const converted = convert(decoded);
    return typeof converted === 'string' ? { kind: 'fault', expected: converted } : { kind: 'value', value: converted };
  };
}
