import type { KubeObject } from '../../kube/kube-client.ts';

const ANYTHING = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

/** A definition of CiliumNode with the names, scope and status subresource of Cilium's own, and no schema of its fields. */
export const CILIUM_NODE_DEFINITION: KubeObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'ciliumnodes.cilium.io' },
  spec: {
    group: 'cilium.io',
    scope: 'Cluster',
    names: {
      kind: 'CiliumNode',
      listKind: 'CiliumNodeList',
      plural: 'ciliumnodes',
      singular: 'ciliumnode',
      shortNames: ['cn', 'ciliumn'],
    },
    versions: [
      {
        name: 'v2',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: ANYTHING, status: ANYTHING } } },
      },
    ],
  },
};
