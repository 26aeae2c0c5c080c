/** One rule of a ClusterRole. */
export type Rule = {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
};

const OURS = ['networking.tke.cloud.tencent.com'];
const READ = ['get', 'list', 'watch'];

/** Rights beyond those that the product publishes, each in a ClusterRole of its own that may be left out. */
export const OWN_RIGHTS: Readonly<Record<string, readonly Rule[]>> = {
  'tke-eni-agent': [{ apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['list'] }],
};

/**
 * The rights that are published for each component, as printed but for the order; the scheduler's lists are flat. Those of the
 * cloud controller manager are Kubernetes'. @see https://kubernetes.io/docs/concepts/architecture/cloud-controller/
 */
export const PUBLISHED_RIGHTS: Readonly<Record<string, readonly Rule[]>> = {
  'tke-eni-agent': [
    { apiGroups: [''], resources: ['pods', 'namespaces', 'nodes', 'configmaps'], verbs: READ },
    { apiGroups: [''], resources: ['nodes/status'], verbs: [...READ, 'patch'] },
    {
      apiGroups: OURS,
      resources: ['underlayips', 'nodeeniconfigs', 'vpcipclaims', 'vpcips', 'vpcenis'],
      verbs: [...READ, 'delete', 'update'],
    },
    { apiGroups: [''], resources: ['events'], verbs: [...READ, 'update', 'patch', 'create'] },
  ],
  'tke-eni-ipamd': [
    {
      apiGroups: [''],
      resources: ['pods', 'namespaces', 'nodes', 'nodes/status'],
      verbs: [...READ, 'patch', 'update'],
    },
    {
      apiGroups: [''],
      resources: ['configmaps', 'endpoints', 'events'],
      verbs: [...READ, 'update', 'create', 'patch'],
    },
    { apiGroups: ['apps', 'extensions'], resources: ['statefulsets', 'deployments'], verbs: READ },
    {
      apiGroups: ['apiextensions.k8s.io'],
      resources: ['customresourcedefinitions'],
      verbs: ['create', 'update', 'get'],
    },
    {
      apiGroups: OURS,
      resources: ['staticipconfigs', 'underlayips', 'nodeeniconfigs', 'vpcipclaims', 'vpcips', 'eipclaims', 'vpcenis'],
      verbs: [...READ, 'create', 'update', 'delete', 'patch'],
    },
    { apiGroups: ['node.tke.cloud.tencent.com'], resources: ['machines'], verbs: READ },
    {
      apiGroups: ['cilium.io'],
      resources: ['ciliumnodes', 'ciliumnodes/status', 'ciliumnodes/finalizers'],
      verbs: [...READ, 'create', 'update', 'delete', 'patch'],
    },
  ],
  'tke-eni-ip-scheduler': [
    { apiGroups: [''], resources: ['pods/binding'], verbs: [...READ, 'update', 'create', 'patch'] },
    {
      apiGroups: [''],
      resources: ['configmaps', 'endpoints', 'events'],
      verbs: [...READ, 'update', 'create', 'patch'],
    },
    { apiGroups: [''], resources: ['pods', 'namespaces', 'nodes', 'nodes/status'], verbs: READ },
    { apiGroups: OURS, resources: ['nodeeniconfigs', 'vpcipclaims', 'vpcips'], verbs: [...READ, 'update'] },
  ],
  'tke-cloud-controller-manager': [
    { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch', 'update'] },
    { apiGroups: [''], resources: ['nodes'], verbs: ['*'] },
    { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
    { apiGroups: [''], resources: ['services'], verbs: ['list', 'patch', 'update', 'watch'] },
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['create'] },
    { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get', 'list', 'update', 'watch'] },
    { apiGroups: [''], resources: ['endpoints'], verbs: ['create', 'get', 'list', 'watch', 'update'] },
  ],
};
