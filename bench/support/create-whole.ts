import type { KubeClient, KubeObject, ResourceType } from '../../kube/kube-client.ts';

/** Creates an object with its status, which an API server does not take with the object. @throws KubeError */
export async function createWhole(client: KubeClient, type: ResourceType, object: KubeObject): Promise<void> {
  const { namespace, name } = object.metadata;
  await client.create(type, object);
  const { status } = object as { readonly status?: unknown };
  const target = { name, ...(namespace !== undefined && { namespace }) };
  await client.patch(type, target, { kind: 'merge', body: { status }, subresource: 'status' });
}
