import { WEBHOOK_CONFIGURATION_STRATEGY } from '../admission/configuration-strategy.ts';
import { POLICY_BINDING_STRATEGY, POLICY_STRATEGY } from '../admission/policy-strategy.ts';
import { BUILT_IN_COLUMNS } from '../table/built-in-columns.ts';
import { type ApiResource, type Strategy, storageKey } from './api-resource.ts';
import { DEFINITION_STRATEGY } from './definition-strategy.ts';
import { INGRESS_CLASS_STRATEGY, INGRESS_STRATEGY } from './ingress-strategy.ts';
import { POD_STRATEGY } from './pods.ts';
import { SERVICE_STRATEGY } from './services/service-strategy.ts';
import {
  CONFIG_MAP_STRATEGY,
  EVENT_STRATEGY,
  LEASE_STRATEGY,
  NAMESPACE_STRATEGY,
  NODE_STRATEGY,
  ROLE_BINDING_STRATEGY,
  SECRET_STRATEGY,
  WORKLOAD_STRATEGY,
} from './strategies.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

type Short = Partial<ApiResource> & { readonly kind: string };

/** Which resources a real server has is decided by its release; these are the ones that our components meet. */
const GROUPS: Readonly<Record<string, readonly Short[]>> = {
  '/v1': [
    {
      kind: 'Namespace',
      namespaced: false,
      shortNames: ['ns'],
      subresources: ['finalize', 'status'],
      strategy: NAMESPACE_STRATEGY,
    },
    { kind: 'Node', namespaced: false, shortNames: ['no'], subresources: ['status'], strategy: NODE_STRATEGY },
    {
      kind: 'Pod',
      shortNames: ['po'],
      categories: ['all'],
      subresources: ['binding', 'eviction', 'status'],
      strategy: POD_STRATEGY,
      returnsDeleted: true,
    },
    { kind: 'ConfigMap', shortNames: ['cm'], strategy: CONFIG_MAP_STRATEGY },
    { kind: 'Secret', strategy: SECRET_STRATEGY },
    {
      kind: 'Service',
      shortNames: ['svc'],
      categories: ['all'],
      subresources: ['status'],
      createsOnUpdate: true,
      returnsDeleted: true,
      strategy: SERVICE_STRATEGY,
    },
    { kind: 'Endpoints', plural: 'endpoints', shortNames: ['ep'], createsOnUpdate: true },
    { kind: 'Event', shortNames: ['ev'], createsOnUpdate: true, strategy: EVENT_STRATEGY },
    { kind: 'ServiceAccount', shortNames: ['sa'], subresources: ['token'], returnsDeleted: true },
  ],
  'apps/v1': [
    {
      kind: 'Deployment',
      shortNames: ['deploy'],
      categories: ['all'],
      subresources: ['scale', 'status'],
      generation: 'spec',
      strategy: WORKLOAD_STRATEGY,
    },
    {
      kind: 'StatefulSet',
      shortNames: ['sts'],
      categories: ['all'],
      subresources: ['scale', 'status'],
      generation: 'spec',
      strategy: WORKLOAD_STRATEGY,
    },
    {
      kind: 'DaemonSet',
      shortNames: ['ds'],
      categories: ['all'],
      subresources: ['status'],
      generation: 'spec',
      strategy: WORKLOAD_STRATEGY,
    },
    {
      kind: 'ReplicaSet',
      shortNames: ['rs'],
      categories: ['all'],
      subresources: ['scale', 'status'],
      generation: 'spec',
      strategy: WORKLOAD_STRATEGY,
    },
  ],
  'batch/v1': [
    { kind: 'Job', categories: ['all'], subresources: ['status'], generation: 'spec', strategy: WORKLOAD_STRATEGY },
  ],
  'coordination.k8s.io/v1': [{ kind: 'Lease', createsOnUpdate: true, strategy: LEASE_STRATEGY }],
  'discovery.k8s.io/v1': [{ kind: 'EndpointSlice', generation: 'all' }],
  'networking.k8s.io/v1': [
    {
      kind: 'Ingress',
      plural: 'ingresses',
      shortNames: ['ing'],
      subresources: ['status'],
      createsOnUpdate: true,
      generation: 'spec',
      strategy: INGRESS_STRATEGY,
    },
    {
      kind: 'IngressClass',
      plural: 'ingressclasses',
      namespaced: false,
      generation: 'spec',
      strategy: INGRESS_CLASS_STRATEGY,
    },
    { kind: 'ServiceCIDR', plural: 'servicecidrs', namespaced: false, subresources: ['status'], generation: 'spec' },
  ],
  'policy/v1': [
    {
      kind: 'PodDisruptionBudget',
      shortNames: ['pdb'],
      subresources: ['status'],
      generation: 'spec',
      strategy: WORKLOAD_STRATEGY,
    },
  ],
  'rbac.authorization.k8s.io/v1': [
    { kind: 'ClusterRole', namespaced: false, createsOnUpdate: true },
    { kind: 'ClusterRoleBinding', namespaced: false, createsOnUpdate: true, strategy: ROLE_BINDING_STRATEGY },
    { kind: 'Role', createsOnUpdate: true },
    { kind: 'RoleBinding', createsOnUpdate: true, strategy: ROLE_BINDING_STRATEGY },
  ],
  'scheduling.k8s.io/v1': [
    { kind: 'PriorityClass', plural: 'priorityclasses', namespaced: false, shortNames: ['pc'], generation: 'all' },
  ],
  'admissionregistration.k8s.io/v1': [
    {
      kind: 'MutatingWebhookConfiguration',
      namespaced: false,
      categories: ['api-extensions'],
      generation: 'all',
      strategy: WEBHOOK_CONFIGURATION_STRATEGY,
    },
    {
      kind: 'ValidatingAdmissionPolicy',
      plural: 'validatingadmissionpolicies',
      namespaced: false,
      categories: ['api-extensions'],
      subresources: ['status'],
      generation: 'spec',
      strategy: POLICY_STRATEGY,
    },
    {
      kind: 'ValidatingAdmissionPolicyBinding',
      namespaced: false,
      categories: ['api-extensions'],
      generation: 'spec',
      strategy: POLICY_BINDING_STRATEGY,
    },
  ],
  'apiextensions.k8s.io/v1': [
    {
      kind: 'CustomResourceDefinition',
      namespaced: false,
      shortNames: ['crd', 'crds'],
      categories: ['api-extensions'],
      subresources: ['status'],
      generation: 'spec',
      strategy: DEFINITION_STRATEGY,
    },
  ],
  'authentication.k8s.io/v1': [
    { kind: 'TokenReview', namespaced: false, verbs: ['create'] },
    { kind: 'SelfSubjectReview', namespaced: false, verbs: ['create'] },
  ],
  'authorization.k8s.io/v1': [
    { kind: 'SubjectAccessReview', namespaced: false, verbs: ['create'] },
    { kind: 'SelfSubjectAccessReview', namespaced: false, verbs: ['create'] },
  ],
};

const NO_STRATEGY: Strategy = {};

/** The resources that are always there. */
export const BUILT_IN_RESOURCES: readonly ApiResource[] = Object.entries(GROUPS).flatMap(([groupVersion, kinds]) => {
  const [group = '', version = ''] = groupVersion.split('/');
  return kinds.map((short): ApiResource => {
    const singular = short.kind.toLowerCase();
    const plural = short.plural ?? `${singular}s`;
    return {
      group,
      version,
      singular,
      plural,
      shortNames: [],
      categories: [],
      namespaced: true,
      verbs: VERBS,
      subresources: [],
      createsOnUpdate: false,
      needsResourceVersion: false,
      generation: 'none',
      returnsDeleted: false,
      strategy: NO_STRATEGY,
      columns: BUILT_IN_COLUMNS[storageKey({ group, plural })] ?? BUILT_IN_COLUMNS['default'] ?? [],
      ...short,
    };
  });
});

/** Reports whether a group has resources that are always there; it says in another way than others what it has not. */
export function isBuiltInGroup(group: string): boolean {
  return BUILT_IN_RESOURCES.some((one) => one.group === group);
}
