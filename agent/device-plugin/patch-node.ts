import type { KubeClient } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';

/** The amount of one resource in a Node's status. */
type NodeResource = {
  readonly resource: string;
  /** Number of devices. */
  readonly capacity: number;
  /** Number of devices that may be given to Pods. */
  readonly allocatable: number;
};

/**
 * Writes the amount of a resource into the Node's status; kubelet overwrites it with its own at its next sync.
 * Idempotent. Returns the Node's resourceVersion, which stays the same until the Node is changed.
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
