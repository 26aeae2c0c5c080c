import { DIRECT_ENI_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import { type ReadPodWishes, readPodWishes } from '../../crd/pod-wishes.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';

/** What ipamd keeps of a Pod; tens of thousands are held at once. */
export type PodFacts = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** '' for a Pod without a node; only those with `lasting` are kept. */
  readonly nodeName: string;
  /** First the address of the cluster's first family; empty until the sandbox has one. */
  readonly ips: readonly string[];
  readonly phase: PodPhase;
  /** Somebody asked for its deletion: its containers may run for as long as they like. */
  readonly isLeaving: boolean;
  /** Those that say what a Pod asks for, by their full names; one that is far too long is cut, and then a fault. */
  readonly annotations: Readonly<Record<string, string>>;
  /** Of Pods alone that ask for what outlives them or is prepared for them: a kept address, an EIP, security groups. */
  readonly lasting?: LastingFacts;
};

/** What is kept of the few Pods that have objects of their own. */
export type LastingFacts = {
  readonly labels: Readonly<Record<string, string>>;
  /** Its controller: a StatefulSet, a ReplicaSet. */
  readonly owner?: PodOwner;
  /** By its annotation, else by its resources: who asks for an exclusive ENI by resource gets one. */
  readonly mode: 'route-eni' | 'direct-eni';
  /** By which its node knows it, where that is not its uid in the API: of the mirror of a Pod from a kubelet's manifest. */
  readonly runtimeUid?: string;
};

/** The controller of a Pod. */
export type PodOwner = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
};

/** Phases in which a Pod may have an address; one that is over has none. */
export type PodPhase = 'Pending' | 'Running' | 'Unknown';

/** The index of an informer of Pods by node: who asks for it by this name finds the Pods that live on a node. */
export const PODS_BY_NODE = 'node';

const NO_IPS: readonly string[] = Object.freeze([]);

/** What the informer of Pods indexes: byIndex(PODS_BY_NODE, nodeName). */
export const POD_INDEXES = {
  [PODS_BY_NODE]: (pod: PodFacts): readonly string[] => (pod.nodeName === '' ? NO_IPS : [pod.nodeName]),
};

const PHASES: readonly PodPhase[] = ['Pending', 'Running', 'Unknown'];
const NO_ANNOTATIONS: Readonly<Record<string, string>> = Object.freeze({});
/** On the mirror of a Pod that its kubelet has from a manifest: the uid of that Pod. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
/** Anybody may write hundreds of kilobytes under other names of the product, which nobody here reads. */
const READ: readonly string[] = Object.values(POD_ANNOTATION);
/** What is longer is no value: the longest list of ids is half of it. */
const MOST_CHARS = 8_192;
const SHOWN_CHARS = 64;
/** More values are not remembered: a cluster has some thousands of nodes and namespaces. */
const MOST_SHARED = 20_000;

/**
 * Makes the decoder of an informer of Pods. It keeps Pods that have or may get an address of an ENI: on a node, with a
 * network of their own, not over; and before they have a node those that something is prepared for. Of the others
 * (undefined) nothing is kept. Node names, namespaces and annotations
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
    if (spec['hostNetwork'] === true || phase === undefined) return undefined;
    const { name, namespace = '', uid = '', deletionTimestamp } = object.metadata;
    const annotations = oursOf(object.metadata.annotations, sharedAnnotations);
    const lasting = LASTING.some((one) => annotations[one] !== undefined) ? lastingOf(object, annotations) : undefined;
    if (nodeName === '' && lasting === undefined) return undefined;
    return {
      namespace: sharedText(namespace, namespace),
      name,
      uid,
      nodeName: sharedText(nodeName, nodeName),
      ips: ipsOf(status),
      phase,
      isLeaving: deletionTimestamp !== undefined,
      annotations,
      ...(lasting === undefined ? {} : { lasting }),
    };
  };
}

const READ_WISHES = new WeakMap<PodFacts['annotations'], ReadPodWishes>();

/** The uid by which kubelet, runtime and agent of its node know a Pod: what fences an address or an ENI. Pure. */
export function runtimeUidOf({ uid, lasting }: Pick<PodFacts, 'uid' | 'lasting'>): string {
  return lasting?.runtimeUid ?? uid;
}

/** Reads what a Pod asks for by its annotations; once for all Pods of the same annotations. */
export function wishesOf({ annotations }: Pick<PodFacts, 'annotations'>): ReadPodWishes {
  const known = READ_WISHES.get(annotations);
  if (known !== undefined) return known;
  const read = readPodWishes(annotations);
  READ_WISHES.set(annotations, read);
  return read;
}

/** The key of a Pod in caches: `namespace/name`. Pure. */
export function podKeyOf(pod: { readonly namespace: string; readonly name: string }): string {
  return `${pod.namespace}/${pod.name}`;
}

/** Who has one of these has, or may have, an object of its own. */
const LASTING: readonly string[] = [
  POD_ANNOTATION.deletePolicy,
  POD_ANNOTATION.eipAttributes,
  POD_ANNOTATION.eipIdList,
  POD_ANNOTATION.securityGroups,
];

/** Undefined for a Pod that says in so many words that nothing of it is kept. */
function lastingOf(object: KubeObject, annotations: PodFacts['annotations']): LastingFacts | undefined {
  const { wishes, faults } = wishesOf({ annotations });
  // What is wrong is told, so the Pod is kept.
  const isLasting =
    wishes.isStatic || wishes.eip !== undefined || wishes.securityGroupIds !== undefined || faults.length > 0;
  if (!isLasting) return undefined;
  const { labels = {}, ownerReferences = [], annotations: all = {} } = object.metadata;
  const runtimeUid = all[MIRROR_ANNOTATION];
  const owner = ownerReferences.find(({ controller }) => controller === true);
  return {
    labels,
    ...(owner === undefined
      ? {}
      : { owner: { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, uid: owner.uid } }),
    mode: wishes.mode ?? (asksForEni(object) ? 'direct-eni' : 'route-eni'),
    ...(runtimeUid === undefined ? {} : { runtimeUid }),
  };
}

function asksForEni(object: KubeObject): boolean {
  const containers = recordOf(object['spec'])['containers'];
  return (Array.isArray(containers) ? containers : []).some((container: unknown) => {
    const { limits, requests } = recordOf(recordOf(container)['resources']);
    return [limits, requests].some((one) => recordOf(one)[DIRECT_ENI_RESOURCE] !== undefined);
  });
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
  const names = READ.filter((one) => annotations?.[one] !== undefined);
  if (names.length === 0) return NO_ANNOTATIONS;
  const pairs = names.map((one) => [one, boundedOf(textOf(annotations?.[one]))] as const);
  return shared(JSON.stringify(pairs), Object.fromEntries(pairs));
}

/** It is a fault in any form, and is told as one. */
function boundedOf(text: string): string {
  if (text.length <= MOST_CHARS) return text;
  // A copy: a slice would hold the whole text.
  return JSON.parse(JSON.stringify(`${text.slice(0, SHOWN_CHARS)}… (${text.length} characters)`)) as string;
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
