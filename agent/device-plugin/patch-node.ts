import type { KubeClient } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';

/** What a node says of a resource. */
export type NodeResource = {
  readonly resource: string;
  /** Devices there are. */
  readonly capacity: number;
  /** Of them, those that may be given. */
  readonly allocatable: number;
};

/**
 * Writes into the Node's status how much of a resource it has; kubelet writes what it thinks with its next sync. Idempotent.
 * Answers with the Node's resourceVersion, which stays while nobody changes the Node.
 * @throws KubeError
 */
export async function patchNode(
  kube: KubeClient,
  nodeName: string,
  { resource, capacity, allocatable }: NodeResource,
  signal: AbortSignal,
): Promise<string | undefined> {
  const status = { capacity: { [resource]: String(capacity) }, allocatable: { [resource]: String(allocatable) } };
  const patch = { kind: 'merge', body: { status }, subresource: 'status' } as const;
  const { metadata } = await kube.patch(NODES, { name: nodeName }, patch, signal);
  return metadata.resourceVersion;
}
