import { INGRESS_FINALIZER, SERVICE_ANNOTATION, SERVICE_FINALIZER } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { CacheBounds } from '../../kube/object-cache.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { recordOf, recordsOf, textOf } from '../../runtime/json.ts';
import { OWNER_NAMES } from './balancer-owner.ts';

const MIB = 1_048_576;

/**
 * What is kept of Services and Ingresses, of other classes and types too: 5,000 paths, which is the most that is planned. Of one
 * that is larger what shows whose it is and what it has is kept, and it is refused.
 */
export const OWNER_BOUNDS: CacheBounds<KubeObject> = {
  objectBytes: 3 * MIB,
  namespaceBytes: 64 * MIB,
  smallBytes: 16_384,
  instead: (object, _, why) => ({ ...headOnly(object), [TOO_LARGE]: why }),
};

const TOO_LARGE = Symbol('why an object is not kept whole');

/** Refuses an object that is too large to be kept whole. @throws ConfigError */
export function refuseTooLarge(object: KubeObject, source: string): void {
  const { [TOO_LARGE]: got } = object as { readonly [TOO_LARGE]?: string };
  if (got === undefined) return;
  throw new ConfigError(source, [{ path: '', expected: 'a smaller object, or several', got }]);
}

/** Characters of all annotations, or labels, that are kept of one that is too large. */
const MAX_CHARS = 16_384;
const MAX_ENTRIES = 100;
/** Ports of a Service, as most are read: those of a pool stay taken. */
const MAX_PORTS = 1_000;
const MAX_NAME = 253;

const FINALIZERS: readonly string[] = [SERVICE_FINALIZER, INGRESS_FINALIZER];
/** They are kept before others. */
const FIRST: readonly string[] = [
  ...Object.values(SERVICE_ANNOTATION),
  ...Object.values(OWNER_NAMES).flatMap((names) => [names.existing, names.mode]),
];

/** Returns an object with what decides whose it is, and what it has. */
function headOnly({ metadata, spec, status, apiVersion, kind }: KubeObject): KubeObject {
  const { finalizers = [], annotations = {}, labels = {} } = metadata;
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const { type, loadBalancerClass, ingressClassName, ports } = recordOf(spec);
  const addresses = recordsOf(recordOf(recordOf(status)['loadBalancer'])['ingress']);
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace && { namespace }),
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      ...(creationTimestamp && { creationTimestamp }),
      ...(deletionTimestamp && { deletionTimestamp }),
      // Those of others too, which a write of the list would take away: an honest object has few.
      finalizers: isShort(finalizers) ? finalizers : finalizers.filter((one) => FINALIZERS.includes(one)),
      annotations: someOf(annotations),
      labels: someOf(labels),
    },
    spec: {
      ...shortOf({ type, loadBalancerClass, ingressClassName }),
      ports: recordsOf(ports)
        .slice(0, MAX_PORTS)
        .map(({ name: its, protocol, port, nodePort }) => ({ ...shortOf({ name: its, protocol }), port, nodePort })),
    },
    status: {
      loadBalancer: { ingress: addresses.slice(0, MAX_ENTRIES).map(({ ip, hostname }) => shortOf({ ip, hostname })) },
    },
  };
}

function isShort(texts: readonly string[]): boolean {
  return texts.length <= MAX_ENTRIES && texts.every(({ length }) => length <= MAX_NAME);
}

/** Returns the texts that are no longer than a name. */
function shortOf(values: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const texts = Object.entries(values).map(([key, value]) => [key, textOf(value)] as const);
  return Object.fromEntries(texts.filter(([, text]) => text !== '' && text.length <= MAX_NAME));
}

/** Returns the first entries within the limit, those that are read before others. */
function someOf(values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const names = new Set([...FIRST.filter((name) => Object.hasOwn(values, name)), ...Object.keys(values)]);
  const kept: Record<string, string> = {};
  let left = MAX_CHARS;
  for (const name of names) {
    const value = values[name] ?? '';
    left -= name.length + value.length;
    if (left < 0 || Object.keys(kept).length >= MAX_ENTRIES) break;
    kept[name] = value;
  }
  return kept;
}
