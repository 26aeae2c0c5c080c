import { MIRROR_ANNOTATION } from '../crd/foreign-names.ts';
import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE, POD_ANNOTATION, SUB_ENI_RESOURCE } from '../crd/names.ts';
import { type Annotations, type PodNetworkRequest, readPodNetworkRequest } from '../crd/pod-network-request.ts';
import { type NetworkName, readPodNetworks } from '../crd/pod-networks.ts';
import { type StaticIpRule, selectStaticIpConfig } from '../crd/select-static-ip-config.ts';
import { renderFault } from '../runtime/decode.ts';
import { type AddOperation, type Admission, add, escapePointer } from './admission.ts';
import type { AdmittedContainer, AdmittedPod } from './admitted-pod.ts';

/** The context of an admission decision. */
export type AdmissionContext = {
  /** Namespace of the request: the Pod object may lack it before it is created. */
  readonly namespace: string;
  /** The network of Pods that do not name one. */
  readonly defaultNetwork: NetworkName;
  /** All StaticIPConfigs that are cached. */
  readonly rules: Iterable<StaticIpRule>;
  /** Namespace of ipamd: a StaticIPConfig there may apply to the whole cluster. */
  readonly clusterNamespace: string;
};

/**
 * Decides what is added to a Pod: the request of the extended resource by which the scheduler finds a node with a free
 * address, and the annotation by which a StaticIPConfig makes its address static.
 *
 * An annotation that cannot be read adds nothing and yields a warning. Existing fields are never changed, so a second
 * run over the result adds nothing.
 */
export function decideAdmission(pod: AdmittedPod, context: AdmissionContext): Admission {
  const annotations = pod.metadata.annotations ?? {};
  const isOutOfReach = pod.spec.hostNetwork === true || annotations[MIRROR_ANNOTATION] !== undefined;
  if (isOutOfReach) return { patch: [], warnings: [] };
  const { request, faults } = readPodNetworkRequest(annotations);
  const requested = requestedResources(pod);
  const network = decideNetwork(annotations[POD_ANNOTATION.networks] ?? '', request.mode, requested, context);
  const hasNetwork = network.add !== undefined || NETWORK_RESOURCES.some((one) => requested.has(one));
  const lacksEip = request.eip !== undefined && !requested.has(EIP_RESOURCE);
  const added: readonly string[] = [
    ...(network.add === undefined ? [] : [network.add]),
    ...(lacksEip && hasNetwork ? [EIP_RESOURCE] : []),
  ];
  const isStatic = hasNetwork && isSelectedStatic(pod, context);
  return {
    patch: [
      ...requestPatch(pod.spec.containers[0], added),
      ...(isStatic ? [annotationPatch(pod.metadata.annotations, POD_ANNOTATION.deletePolicy, 'Never')] : []),
    ],
    warnings: [
      ...faults.map(renderFault),
      ...network.warnings,
      ...(requested.has(SUB_ENI_RESOURCE) ? [SUB_ENI_WARNING] : []),
      ...(lacksEip && !hasNetwork ? [eipWithoutNetwork(annotations)] : []),
    ],
  };
}

const NETWORK_RESOURCES = [ENI_IP_RESOURCE, DIRECT_ENI_RESOURCE] as const;
const RESOURCE_OF = { 'route-eni': ENI_IP_RESOURCE, 'direct-eni': DIRECT_ENI_RESOURCE } as const;

const SUB_ENI_WARNING = `${SUB_ENI_RESOURCE}: expected ${ENI_IP_RESOURCE} or ${DIRECT_ENI_RESOURCE}; no node offers interfaces on trunk ENIs, the Pod will stay Pending`;

function eipWithoutNetwork(annotations: Annotations): string {
  const path = annotations[POD_ANNOTATION.eipIdList] === undefined ? 'eipAttributes' : 'eipIdList';
  return `${POD_ANNOTATION[path]}: expected a Pod with an address of the VPC, which an EIP is bound to; no EIP is requested`;
}

type NetworkDecision = { readonly add?: string; readonly warnings: readonly string[] };

function decideNetwork(
  networks: string,
  mode: PodNetworkRequest['mode'],
  requested: ReadonlySet<string>,
  { defaultNetwork }: AdmissionContext,
): NetworkDecision {
  const path = POD_ANNOTATION.networks;
  const isNamed = readPodNetworks(networks).kind !== 'default';
  const desiredMode = isNamed ? mode : DEFAULT_MODE[defaultNetwork];
  if (desiredMode === undefined) return { warnings: [] };
  const has = NETWORK_RESOURCES.filter((one) => requested.has(one));
  if (has.length === 0) return { add: RESOURCE_OF[desiredMode], warnings: [] };
  if (!isNamed || has.includes(RESOURCE_OF[desiredMode])) return { warnings: [] };
  return {
    warnings: [`${path}: expected a request of ${RESOURCE_OF[desiredMode]}; the Pod has ${has[0]}`],
  };
}

const DEFAULT_MODE = { 'tke-route-eni': 'route-eni', 'tke-direct-eni': 'direct-eni', 'tke-bridge': undefined } as const;

function isSelectedStatic(
  { metadata }: AdmittedPod,
  { namespace, rules, clusterNamespace }: AdmissionContext,
): boolean {
  // The Pod's own annotation takes precedence, whatever its value.
  if (metadata.annotations?.[POD_ANNOTATION.deletePolicy] !== undefined) return false;
  const rule = selectStaticIpConfig(rules, { namespace, labels: metadata.labels ?? {} }, clusterNamespace);
  return rule?.spec?.deletePolicy === 'Never';
}

function requestedResources({ spec }: AdmittedPod): ReadonlySet<string> {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  // A quantity of zero counts as well: its author requests no address on purpose.
  return new Set(
    containers.flatMap(({ resources }) => [
      ...Object.keys(resources?.limits ?? {}),
      ...Object.keys(resources?.requests ?? {}),
    ]),
  );
}

/**
 * Builds the patch for resource requests. An extended resource is not overcommitted: its request and its limit must
 * both be present and equal.
 */
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
