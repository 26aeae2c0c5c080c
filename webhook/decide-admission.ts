import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE, POD_ANNOTATION } from '../crd/names.ts';
import { readNetworks } from '../crd/pod-networks.ts';
import { type Annotations, type PodWishes, readPodWishes } from '../crd/pod-wishes.ts';
import { type StaticIpRule, selectStaticIpConfig } from '../crd/select-static-ip-config.ts';
import type { Fault } from '../runtime/decode.ts';
import type { AdmittedContainer, AdmittedPod } from './admitted-pod.ts';

/** One step of a JSON patch; nothing is ever replaced or removed. @see RFC 6902 */
export type AddOperation = { readonly op: 'add'; readonly path: string; readonly value: unknown };

/** What becomes of a Pod that is to be created, and what its creator is told. */
export type Admission = { readonly patch: readonly AddOperation[]; readonly warnings: readonly string[] };

/** What a Pod is looked at with. */
export type AdmissionScene = {
  /** Of the request: an object that is not created yet may lack it. */
  readonly namespace: string;
  /** The network of Pods that name none. */
  readonly defaultNetwork: 'tke-route-eni' | 'tke-direct-eni' | 'tke-bridge';
  /** All that are known. */
  readonly rules: Iterable<StaticIpRule>;
  /** ipamd's: rules there may be for the whole cluster. */
  readonly clusterNamespace: string;
};

/**
 * Decides what is added to a Pod: the request of the device by which its node makes room for it, and the annotation by which
 * a StaticIPConfig keeps its address. A wish that cannot be read adds nothing and is a warning. What is there is never
 * changed, so a second look at the outcome adds nothing. Pure.
 */
export function decideAdmission(pod: AdmittedPod, scene: AdmissionScene): Admission {
  const annotations = pod.metadata.annotations ?? {};
  // Of a mirror of a static Pod nothing is read again: the kubelet has its own copy, made without us.
  const isOutOfReach = pod.spec.hostNetwork === true || annotations[MIRROR_ANNOTATION] !== undefined;
  if (isOutOfReach) return { patch: [], warnings: [] };
  const { wishes, faults } = readPodWishes(annotations);
  const requested = requestedResources(pod);
  const network = decideNetwork(annotations[POD_ANNOTATION.networks] ?? '', wishes.mode, requested, scene);
  const hasNetwork = network.add !== undefined || NETWORK_RESOURCES.some((one) => requested.has(one));
  const lacksEip = wishes.eip !== undefined && !requested.has(EIP_RESOURCE);
  const added: readonly string[] = [
    ...(network.add === undefined ? [] : [network.add]),
    ...(lacksEip && hasNetwork ? [EIP_RESOURCE] : []),
  ];
  const isKept = hasNetwork && decideKept(pod, scene);
  return {
    patch: [
      ...requestPatch(pod.spec.containers[0], added),
      ...(isKept ? [annotationPatch(pod.metadata.annotations, POD_ANNOTATION.deletePolicy, 'Never')] : []),
    ],
    warnings: [
      ...faults.map(renderFault),
      ...network.warnings,
      ...(lacksEip && !hasNetwork ? [loneEip(annotations)] : []),
    ],
  };
}

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const NETWORK_RESOURCES = [ENI_IP_RESOURCE, DIRECT_ENI_RESOURCE] as const;
const RESOURCE_OF = { 'route-eni': ENI_IP_RESOURCE, 'direct-eni': DIRECT_ENI_RESOURCE } as const;

function loneEip(annotations: Annotations): string {
  const path = annotations[POD_ANNOTATION.eipIdList] === undefined ? 'eipAttributes' : 'eipIdList';
  return `${POD_ANNOTATION[path]}: expected a Pod with an address of the VPC, which an EIP is bound to; no EIP is requested`;
}

type NetworkDecision = { readonly add?: string; readonly warnings: readonly string[] };

function decideNetwork(
  asked: string,
  mode: PodWishes['mode'],
  requested: ReadonlySet<string>,
  { defaultNetwork }: AdmissionScene,
): NetworkDecision {
  const path = POD_ANNOTATION.networks;
  const names = readNetworks(asked).filter((name) => name !== '');
  const isNamed = asked.trim() !== '';
  if (isNamed && names.length === 0) {
    return {
      warnings: [`${path}: expected names of networks such as tke-route-eni, with commas; nothing is requested`],
    };
  }
  const wanted = isNamed ? mode : DEFAULT_MODE[defaultNetwork];
  if (wanted === undefined) return { warnings: [] };
  const isTorn = names.includes('tke-direct-eni') && names.includes('tke-route-eni');
  const warnings = isTorn ? [`${path}: expected one of tke-direct-eni and tke-route-eni; takes tke-direct-eni`] : [];
  const has = NETWORK_RESOURCES.filter((one) => requested.has(one));
  if (has.length === 0) return { add: RESOURCE_OF[wanted], warnings };
  if (!isNamed || has.includes(RESOURCE_OF[wanted])) return { warnings };
  return { warnings: [...warnings, `${path}: expected a request of ${RESOURCE_OF[wanted]}; the Pod has ${has[0]}`] };
}

const DEFAULT_MODE = { 'tke-route-eni': 'route-eni', 'tke-direct-eni': 'direct-eni', 'tke-bridge': undefined } as const;

function decideKept({ metadata }: AdmittedPod, { namespace, rules, clusterNamespace }: AdmissionScene): boolean {
  // A word of the Pod itself goes first, whatever it says.
  if (metadata.annotations?.[POD_ANNOTATION.deletePolicy] !== undefined) return false;
  const rule = selectStaticIpConfig(rules, { namespace, labels: metadata.labels ?? {} }, clusterNamespace);
  return rule?.spec?.deletePolicy === 'Never';
}

function requestedResources({ spec }: AdmittedPod): ReadonlySet<string> {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  // Zero is a word as well: whoever wrote it wants none.
  return new Set(
    containers.flatMap(({ resources }) => [
      ...Object.keys(resources?.limits ?? {}),
      ...Object.keys(resources?.requests ?? {}),
    ]),
  );
}

/** An extended resource is not overcommitted: its request and its limit are both there and the same. */
function requestPatch(first: AdmittedContainer | undefined, added: readonly string[]): AddOperation[] {
  if (first === undefined || added.length === 0) return [];
  const quantities = Object.fromEntries(added.map((name) => [name, '1']));
  const path = '/spec/containers/0/resources';
  const { resources } = first;
  if (resources === undefined) return [add(path, { limits: quantities, requests: quantities })];
  return (['limits', 'requests'] as const).flatMap((part) =>
    resources[part] === undefined
      ? [add(`${path}/${part}`, quantities)]
      : added.map((name) => add(`${path}/${part}/${escapePointer(name)}`, '1')),
  );
}

function annotationPatch(present: AdmittedPod['metadata']['annotations'], name: string, value: string): AddOperation {
  if (present === undefined) return add('/metadata/annotations', { [name]: value });
  return add(`/metadata/annotations/${escapePointer(name)}`, value);
}

function add(path: string, value: unknown): AddOperation {
  return { op: 'add', path, value };
}

/** Writes a name as one part of a pointer. @see RFC 6901 section 3 */
function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function renderFault({ path, expected, got }: Fault): string {
  return `${path}: expected ${expected}, got ${got}`;
}
