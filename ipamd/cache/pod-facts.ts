import { MIRROR_ANNOTATION } from '../../crd/foreign-names.ts';
import { DIRECT_ENI_RESOURCE, POD_ANNOTATION, SUB_ENI_RESOURCE } from '../../crd/names.ts';
import { readPodIps, requestsResource } from '../../crd/pod-fields.ts';
import {
  boundedOf,
  MAX_ANNOTATION_CHARS,
  type ReadPodNetworkRequest,
  readPodNetworkRequest,
} from '../../crd/pod-network-request.ts';
import { keptBytes } from '../../kube/kept-bytes.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf, textOf } from '../../runtime/json.ts';

/** What ipamd caches of a Pod; tens of thousands are cached at once. */
export type PodFacts = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** '' for a Pod without a node; such Pods are cached only with `claimInfo` or `asksSubEni`. */
  readonly nodeName: string;
  /** The address of the cluster's first family comes first; empty until the sandbox has one. */
  readonly ips: readonly string[];
  readonly phase: PodPhase;
  /** Its deletion was requested; its containers may still run for any time. */
  readonly isLeaving: boolean;
  /**
   * Annotations that contain a Pod's requests, by their full names; a value that is far too long is cut, and then a
   * fault.
   */
  readonly annotations: Readonly<Record<string, string>>;
  /** The Pod requests an interface on a trunk ENI, which no node offers: it may have no node, and no claim. */
  readonly asksSubEni?: true;
  /** Present only for Pods that have a claim of their own: for a static address, an EIP, or security groups. */
  readonly claimInfo?: PodClaimInfo;
};

/** What is cached only of the few Pods that have a claim of their own. */
type PodClaimInfo = {
  /** Empty where there are too many. */
  readonly labels: Readonly<Record<string, string>>;
  /** Present where the Pod has more labels than are kept: no StaticIPConfig and no workload is found for it, and that is a fault. */
  readonly labelCount?: number;
  /** Its controller, for example a StatefulSet or a ReplicaSet. */
  readonly owner?: PodOwner;
  /** From its annotation, else from its resources: a Pod that requests the resource of exclusive ENIs gets one. */
  readonly mode: 'route-eni' | 'direct-eni';
  /**
   * The uid by which its node identifies it, if that differs from the uid in the API: of a mirror Pod, the uid of the
   * Pod in the kubelet's manifest.
   */
  readonly runtimeUid?: string;
};

/** The controller of a Pod. */
export type PodOwner = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
};

/** Phases in which a Pod may have an address; a finished Pod has none. */
type PodPhase = 'Pending' | 'Running' | 'Unknown';

/** Name of the index of Pods by node: it finds the live Pods of a node. */
export const PODS_BY_NODE = 'node';

const NO_KEYS: readonly string[] = Object.freeze([]);

/** Indexes of the informer of Pods: byIndex(PODS_BY_NODE, nodeName). */
export const POD_INDEXES = {
  [PODS_BY_NODE]: (pod: PodFacts): readonly string[] => (pod.nodeName === '' ? NO_KEYS : [pod.nodeName]),
};

const PHASES: readonly PodPhase[] = ['Pending', 'Running', 'Unknown'];
const NO_ANNOTATIONS: Readonly<Record<string, string>> = Object.freeze({});
/**
 * Names of the cached annotations. Users may write hundreds of kilobytes under other names of the product, which ipamd
 * does not read.
 */
const READ_ANNOTATIONS: readonly string[] = Object.values(POD_ANNOTATION);
const SHOWN_CHARS = 64;
/** Characters of a name of an object. */
const MAX_NAME = 317;
/** Maximum of shared values: a cluster has some thousands of nodes and namespaces. */
const MAX_SHARED = 20_000;
/** Longer texts are not shared: they would stay when their Pods are gone. */
const MAX_SHARED_CHARS = 1_024;

/** How much is kept of one Pod. */
type PodLimits = {
  /** Characters of one annotation, and of all together; what is longer is cut, and then a fault. */
  readonly chars: number;
  readonly charsOfAll: number;
  /** Bytes of labels, as `keptBytes` estimates them. */
  readonly labelBytes: number;
};

/** Two lists of the greatest length, and more labels than anybody writes. */
const LIMITS: PodLimits = { chars: MAX_ANNOTATION_CHARS, charsOfAll: 2 * MAX_ANNOTATION_CHARS, labelBytes: 32_768 };
/** Of a Pod whose namespace has reached its limit. */
const NARROW: PodLimits = { chars: 256, charsOfAll: 2_048, labelBytes: 0 };

/** What is kept of Pods: their authors choose annotations and labels. A Pod is always kept: its address is in use. */
export const POD_BOUNDS = {
  objectBytes: 131_072,
  namespaceBytes: 16 * 1_048_576,
  smallBytes: 8_192,
  instead: (object: KubeObject): PodFacts | undefined => createPodDecoder(NARROW)(object),
};

/**
 * Makes the decoder of an informer of Pods. It caches Pods that have or may get an address of an ENI: on a node, with
 * their own network namespace, not finished; and before they have a node those with a claim of their own. For other
 * Pods it returns undefined. Equal node names, namespaces and annotations are stored once: about 500 bytes a Pod. One
 * decoder serves one informer.
 */
export function createPodDecoder(limits = LIMITS): (object: KubeObject) => PodFacts | undefined {
  const sharedText = sharing<string>();
  const sharedAnnotations = sharing<PodFacts['annotations']>();
  return (object) => {
    const spec = recordOf(object['spec']);
    const status = recordOf(object['status']);
    const nodeName = textOf(spec['nodeName']);
    const phase = status['phase'] === undefined ? 'Pending' : PHASES.find((one) => one === status['phase']);
    if (spec['hostNetwork'] === true || phase === undefined) return undefined;
    const { name, namespace = '', uid = '', deletionTimestamp } = object.metadata;
    const annotations = oursOf(object.metadata.annotations, limits, sharedAnnotations);
    const claimInfo = CLAIM_ANNOTATIONS.some((one) => annotations[one] !== undefined)
      ? claimInfoOf(object, annotations, limits)
      : undefined;
    const asksSubEni = requestsResource(spec, SUB_ENI_RESOURCE);
    if (nodeName === '' && claimInfo === undefined && !asksSubEni) return undefined;
    return {
      namespace: sharedText(namespace, namespace),
      name,
      uid,
      nodeName: sharedText(nodeName, nodeName),
      ips: readPodIps(status),
      phase,
      isLeaving: deletionTimestamp !== undefined,
      annotations,
      ...(asksSubEni && { asksSubEni }),
      ...(claimInfo === undefined ? {} : { claimInfo }),
    };
  };
}

const PARSED_REQUESTS = new WeakMap<PodFacts['annotations'], ReadPodNetworkRequest>();

/**
 * Returns the uid by which kubelet, runtime and agent of its node identify a Pod: the fence of an address or an ENI.
 */
export function runtimeUidOf({ uid, claimInfo }: Pick<PodFacts, 'uid' | 'claimInfo'>): string {
  return claimInfo?.runtimeUid ?? uid;
}

/** Reads the requests in a Pod's annotations; once for all Pods with the same annotations. */
export function networkRequestOf({ annotations }: Pick<PodFacts, 'annotations'>): ReadPodNetworkRequest {
  const known = PARSED_REQUESTS.get(annotations);
  if (known !== undefined) return known;
  const read = readPodNetworkRequest(annotations);
  PARSED_REQUESTS.set(annotations, read);
  return read;
}

/** Returns the key of a Pod in caches: `namespace/name`. */
export function podKeyOf(pod: { readonly namespace: string; readonly name: string }): string {
  return `${pod.namespace}/${pod.name}`;
}

/** Splits the key of a namespaced object in caches. */
export function refOfKey(key: string): { readonly namespace: string; readonly name: string } {
  const [namespace = '', name = ''] = key.split('/');
  return { namespace, name };
}

/** A Pod with one of these annotations has, or may have, a claim of its own. */
const CLAIM_ANNOTATIONS: readonly string[] = [
  POD_ANNOTATION.deletePolicy,
  POD_ANNOTATION.eipAttributes,
  POD_ANNOTATION.eipIdList,
  POD_ANNOTATION.securityGroups,
];

/** Decodes the fields for claims; undefined for a Pod whose annotations rule a claim out. */
function claimInfoOf(
  object: KubeObject,
  annotations: PodFacts['annotations'],
  { labelBytes }: PodLimits,
): PodClaimInfo | undefined {
  const { request, faults } = networkRequestOf({ annotations });
  // Faults are reported, so a Pod with faults is cached too.
  const mayHaveClaim =
    request.isStatic || request.eip !== undefined || request.securityGroupIds !== undefined || faults.length > 0;
  if (!mayHaveClaim) return undefined;
  const { labels = {}, ownerReferences = [], annotations: all = {} } = object.metadata;
  const mirrored = all[MIRROR_ANNOTATION];
  // A longer one is no uid.
  const runtimeUid = mirrored !== undefined && mirrored.length <= MAX_NAME ? mirrored : undefined;
  const areMany = keptBytes(labels, labelBytes) > labelBytes;
  const controllers = ownerReferences.filter(({ controller }) => controller === true);
  // The API server does not check their lengths: no object has a longer name.
  const owner = controllers.find((one) =>
    [one.apiVersion, one.kind, one.name, one.uid].every(({ length }) => length <= MAX_NAME),
  );
  return {
    labels: areMany ? {} : labels,
    ...(areMany ? { labelCount: Object.keys(labels).length } : {}),
    ...(owner === undefined
      ? {}
      : { owner: { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, uid: owner.uid } }),
    mode: request.mode ?? (requestsResource(object['spec'], DIRECT_ENI_RESOURCE) ? 'direct-eni' : 'route-eni'),
    ...(runtimeUid === undefined ? {} : { runtimeUid }),
  };
}

function oursOf(
  annotations: Readonly<Record<string, string>> | undefined,
  { chars, charsOfAll }: PodLimits,
  shared: (key: string, made: PodFacts['annotations']) => PodFacts['annotations'],
): PodFacts['annotations'] {
  const names = READ_ANNOTATIONS.filter((one) => annotations?.[one] !== undefined);
  if (names.length === 0) return NO_ANNOTATIONS;
  let left = charsOfAll;
  const pairs = names.map((one) => {
    const text = boundedOf(textOf(annotations?.[one]), Math.min(chars, Math.max(left, SHOWN_CHARS)));
    left -= text.length;
    return [one, text] as const;
  });
  return shared(JSON.stringify(pairs), Object.fromEntries(pairs));
}

/** Makes a function that returns the first of all values with the same key. */
function sharing<T>(): (key: string, made: T) => T {
  const known = new Map<string, T>();
  return (key, made) => {
    if (key.length > MAX_SHARED_CHARS) return made;
    const first = known.get(key);
    if (first !== undefined) return first;
    if (known.size >= MAX_SHARED) known.clear();
    known.set(key, made);
    return made;
  };
}
