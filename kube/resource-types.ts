import { EIP_CLAIM_KIND } from '../crd/eip-claim.ts';
import { NODE_ENI_CONFIG_KIND } from '../crd/node-eni-config-fields.ts';
import { groupVersionOf, type ResourceKind } from '../crd/resource-kind.ts';
import { STATIC_IP_CONFIG_KIND } from '../crd/static-ip-config.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../crd/tke-service-config.ts';
import { VPC_ENI_KIND } from '../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../crd/vpc-ip-claim.ts';
import type { ResourceType } from './kube-client.ts';

/** Pods. */
export const PODS = core('pods', 'Pod', true);
/** The binding subresource of Pods: `create` a Binding with the Pod's name. */
export const POD_BINDINGS: ResourceType = { ...PODS, kind: 'Binding', subresource: 'binding' };
/** Nodes. */
export const NODES = core('nodes', 'Node', false);
/** Services. */
export const SERVICES = core('services', 'Service', true);
/** ConfigMaps. */
export const CONFIG_MAPS = core('configmaps', 'ConfigMap', true);
/** Secrets: only those that a program keeps its own certificates in, and those of TLS that Ingresses name. */
export const SECRETS = core('secrets', 'Secret', true);
/** What API servers ask of webhooks. */
export const MUTATING_WEBHOOK_CONFIGURATIONS: ResourceType = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'mutatingwebhookconfigurations',
  kind: 'MutatingWebhookConfiguration',
  isNamespaced: false,
};
/** Events of the core group: the published ClusterRoles grant no others. */
export const EVENTS = core('events', 'Event', true);
/** Deployments: their Pods are recognized by labels where ReplicaSets may not be read. */
export const DEPLOYMENTS: ResourceType = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  isNamespaced: true,
};
/** Endpoints, for leader election where a role grants neither ConfigMaps nor Leases. */
export const ENDPOINTS = core('endpoints', 'Endpoints', true);
/** The endpoints of Services, in slices. */
export const ENDPOINT_SLICES: ResourceType = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  isNamespaced: true,
};
/** Ingresses; the status is a subresource. */
export const INGRESSES: ResourceType = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ingresses',
  kind: 'Ingress',
  isNamespaced: true,
};
/** Classes of Ingresses: which controller serves which. */
export const INGRESS_CLASSES: ResourceType = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ingressclasses',
  kind: 'IngressClass',
  isNamespaced: false,
};
/** Leases, for leader election where a role grants them. */
export const LEASES: ResourceType = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  isNamespaced: true,
};
/** Questions whether this client has a right; every client may ask. */
export const SELF_SUBJECT_ACCESS_REVIEWS: ResourceType = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  isNamespaced: false,
  isQuestion: true,
};
/** Definitions of custom resources. */
export const CUSTOM_RESOURCE_DEFINITIONS: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
};
/** Machines of TKE's native nodes. */
export const MACHINES: ResourceType = {
  group: 'node.tke.cloud.tencent.com',
  version: 'v1beta1',
  plural: 'machines',
  kind: 'Machine',
  isNamespaced: false,
};
/** Cilium's objects of nodes; the status is a subresource. */
export const CILIUM_NODES: ResourceType = {
  group: 'cilium.io',
  version: 'v2',
  plural: 'ciliumnodes',
  kind: 'CiliumNode',
  isNamespaced: false,
};

/** The network of each node: its ENIs, their addresses and the calls under way. */
export const NODE_ENI_CONFIGS: ResourceType = resourceTypeOf(NODE_ENI_CONFIG_KIND);
/** Addresses of Pods. */
export const VPC_IPS: ResourceType = resourceTypeOf(VPC_IP_KIND);
/** Claims of Pods to addresses. */
export const VPC_IP_CLAIMS: ResourceType = resourceTypeOf(VPC_IP_CLAIM_KIND);
/** Exclusive ENIs. */
export const VPC_ENIS: ResourceType = resourceTypeOf(VPC_ENI_KIND);
/** Claims of Pods to EIPs. */
export const EIP_CLAIMS: ResourceType = resourceTypeOf(EIP_CLAIM_KIND);
/** Rules for static addresses. */
export const STATIC_IP_CONFIGS: ResourceType = resourceTypeOf(STATIC_IP_CONFIG_KIND);
/** The product's settings of listeners. */
export const TKE_SERVICE_CONFIGS: ResourceType = resourceTypeOf(TKE_SERVICE_CONFIG_KIND);

/** Returns the resource of a kind. */
export function resourceTypeOf(kind: ResourceKind): ResourceType {
  return {
    ...groupVersionOf(kind),
    plural: kind.plural,
    kind: kind.kind,
    isNamespaced: kind.scope === 'Namespaced',
  };
}

/** Renders `apiVersion` of a resource: `v1`, `networking.tke.cloud.tencent.com/v1`. */
export function apiVersionOf(type: ResourceType): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

function core(plural: string, kind: string, isNamespaced: boolean): ResourceType {
  return { group: '', version: 'v1', plural, kind, isNamespaced };
}
