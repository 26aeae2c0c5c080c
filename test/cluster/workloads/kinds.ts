import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE, POD_ANNOTATION } from '../../../crd/names.ts';
import { deploymentManifest, type PodOptions, statefulSetManifest } from '../pods.ts';

/** What a Pod may have of the VPC. What is static, and an EIP, belongs to the name of the Pod and outlives it. */
export const POD_KINDS = ['shared', 'static', 'eip', 'exclusive', 'static-exclusive'] as const;
/** One of POD_KINDS. */
export type PodKind = (typeof POD_KINDS)[number];

/** What ipamd is to be deployed with where Pods of all kinds run. */
export const SETTINGS_OF_ALL_KINDS = {
  'enable-static-ip': 'true',
  'enable-direct-eni': 'true',
  'enable-ownerref': 'true',
} as const;

const EXCLUSIVE = { [POD_ANNOTATION.networks]: 'tke-direct-eni' };
const STATIC = { [POD_ANNOTATION.deletePolicy]: 'Never' };

const ANNOTATIONS: Readonly<Record<PodKind, Readonly<Record<string, string>>>> = {
  shared: {},
  static: STATIC,
  eip: { [POD_ANNOTATION.eipAttributes]: '{}', [POD_ANNOTATION.eipDeletePolicy]: 'Never' },
  exclusive: EXCLUSIVE,
  'static-exclusive': { ...EXCLUSIVE, ...STATIC },
};

const RESOURCES: Readonly<Record<PodKind, readonly string[]>> = {
  shared: [ENI_IP_RESOURCE],
  static: [ENI_IP_RESOURCE],
  eip: [ENI_IP_RESOURCE, EIP_RESOURCE],
  exclusive: [DIRECT_ENI_RESOURCE],
  'static-exclusive': [DIRECT_ENI_RESOURCE],
};

/**
 * Makes the manifest of a workload of Pods of one kind, with the label `app: <name>`: a StatefulSet where something outlives
 * its Pods, a Deployment otherwise. Nothing but the options' annotations wins over what makes the kind.
 */
export function workloadOfKind(kind: PodKind, name: string, replicas: number, options: PodOptions = {}): string {
  const wants = Object.fromEntries(RESOURCES[kind].map((resource) => [resource, '1']));
  const resources = { requests: wants, limits: wants };
  const manifest = isOfDeployment(kind) ? deploymentManifest : statefulSetManifest;
  return manifest(name, replicas, {
    ...options,
    annotations: { ...ANNOTATIONS[kind], ...options.annotations },
    container: { ...options.container, resources },
  });
}

/** The workload of a kind as kubectl names it: `statefulset/db`. */
export function workloadName(kind: PodKind, name: string): string {
  return `${isOfDeployment(kind) ? 'deployment' : 'statefulset'}/${name}`;
}

function isOfDeployment(kind: PodKind): boolean {
  return kind === 'shared' || kind === 'exclusive';
}
