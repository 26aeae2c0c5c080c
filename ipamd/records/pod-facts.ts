import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';

/** What ipamd keeps of a Pod; tens of thousands are held at once. */
export type PodFacts = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly nodeName: string;
  /** First the address of the cluster's first family; empty until the sandbox has one. */
  readonly ips: readonly string[];
  readonly phase: PodPhase;
  /** Somebody asked for its deletion: its containers may run for as long as they like. */
  readonly isLeaving: boolean;
  /** Those of the product, by their full names; what a CNI meta plugin writes back is left out. */
  readonly annotations: Readonly<Record<string, string>>;
};

/** Phases in which a Pod may have an address; one that is over has none. */
export type PodPhase = 'Pending' | 'Running' | 'Unknown';

/** The index of an informer of Pods by node: who asks for it by this name finds the Pods that live on a node. */
export const PODS_BY_NODE = 'node';

/** What the informer of Pods indexes: byIndex(PODS_BY_NODE, nodeName). */
export const POD_INDEXES = { [PODS_BY_NODE]: (pod: PodFacts): readonly string[] => [pod.nodeName] };

const PHASES: readonly PodPhase[] = ['Pending', 'Running', 'Unknown'];
const NO_IPS: readonly string[] = Object.freeze([]);
const NO_ANNOTATIONS: Readonly<Record<string, string>> = Object.freeze({});
const PREFIX = 'tke.cloud.tencent.com/';
/** Hundreds of bytes a Pod that nobody here reads. */
const SKIPPED: readonly string[] = [`${PREFIX}networks-status`];
/** More values are not remembered: a cluster has some thousands of nodes and namespaces. */
const MOST_SHARED = 20_000;

/**
 * Makes the decoder of an informer of Pods. It keeps Pods that have or may get an address of an ENI: on a node, with a
 * network of their own, not over; of the others (undefined) nothing is kept. Node names, namespaces and annotations
 * that many Pods have alike are held once: about 500 bytes a Pod. One decoder serves one informer.
 */
export function createPodDecoder(): (object: KubeObject) => PodFacts | undefined {
  const sharedText = sharing<string>();
  const sharedAnnotations = sharing<PodFacts['annotations']>();
  return (object) => {
    const spec = recordOf(object['spec']);
    const status = recordOf(object['status']);
    const nodeName = textOf(spec['nodeName']);
    const phase = status['phase'] === undefined ? 'Pending' : PHASES.find((one) => one === status['phase']);
    if (nodeName === '' || spec['hostNetwork'] === true || phase === undefined) return undefined;
    const { name, namespace = '', uid = '', deletionTimestamp, annotations } = object.metadata;
    return {
      namespace: sharedText(namespace, namespace),
      name,
      uid,
      nodeName: sharedText(nodeName, nodeName),
      ips: ipsOf(status),
      phase,
      isLeaving: deletionTimestamp !== undefined,
      annotations: oursOf(annotations, sharedAnnotations),
    };
  };
}

/** The key of a Pod in caches: `namespace/name`. Pure. */
export function podKeyOf(pod: { readonly namespace: string; readonly name: string }): string {
  return `${pod.namespace}/${pod.name}`;
}

function ipsOf(status: Readonly<Record<string, unknown>>): readonly string[] {
  const list = Array.isArray(status['podIPs']) ? status['podIPs'] : [];
  const ips = list.map((one: unknown) => textOf(recordOf(one)['ip'])).filter((ip) => ip !== '');
  // A copy, for what `filter` returns has room for sixteen more.
  if (ips.length > 0) return [...ips];
  // Kubelets that know one family only write this field alone.
  const only = textOf(status['podIP']);
  return only === '' ? NO_IPS : [only];
}

function oursOf(
  annotations: Readonly<Record<string, string>> | undefined,
  shared: (key: string, made: PodFacts['annotations']) => PodFacts['annotations'],
): PodFacts['annotations'] {
  const names = Object.keys(annotations ?? {}).filter((one) => one.startsWith(PREFIX) && !SKIPPED.includes(one));
  if (names.length === 0) return NO_ANNOTATIONS;
  const pairs = names.map((one) => [one, textOf(annotations?.[one])] as const);
  return shared(JSON.stringify(pairs), Object.fromEntries(pairs));
}

/** Makes what returns the first of all values that come with the same key. */
function sharing<T>(): (key: string, made: T) => T {
  const known = new Map<string, T>();
  return (key, made) => {
    const first = known.get(key);
    if (first !== undefined) return first;
    if (known.size >= MOST_SHARED) known.clear();
    known.set(key, made);
    return made;
  };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
