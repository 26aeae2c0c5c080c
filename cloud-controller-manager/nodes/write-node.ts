import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODES } from '../../kube/resource-types.ts';
import { type CloudNode, readCloudNode } from './cloud-node.ts';
import type { NodePlan } from './plan-node.ts';

/** How a write ended; `gone`: another Node has the name, or none. */
type NodeWrite =
  | { readonly kind: 'unchanged' | 'gone' | 'updated' | 'initialized' }
  | { readonly kind: 'problem'; readonly message: string };

const NO_ROUTE_YET = {
  type: 'NetworkUnavailable',
  status: 'True',
  reason: 'NoRouteCreated',
  message: 'Node created without a route',
} as const;

/** Condition, addresses and the rest, each with a repetition or two. */
const MAX_STEPS = 8;

/**
 * Writes to a Node what `planOf` says, the status first: the condition that its network is unavailable has to be there
 * when the taint goes. All else is one guarded write. Idempotent.
 * @throws KubeError CONFLICT when others keep changing the Node; whatever else the client throws
 */
export async function writeNode(
  kube: KubeClient,
  object: KubeObject,
  planOf: (node: CloudNode) => NodePlan,
  nowText: string,
  signal: AbortSignal,
): Promise<NodeWrite> {
  const ref = { name: object.metadata.name };
  let current = object;
  let isStatusWritten = false;
  for (let step = 1; ; step++) {
    const node = readCloudNode(current);
    const plan = planOf(node);
    if (plan.kind === 'problem') return plan;
    const { uid, resourceVersion } = node;
    const guard = { uid, resourceVersion };
    try {
      if (plan.isNetworkPending) {
        const condition = { ...NO_ROUTE_YET, lastTransitionTime: nowText, lastHeartbeatTime: nowText };
        const body = { metadata: guard, status: { conditions: [condition] } };
        current = await kube.patch(NODES, ref, { kind: 'strategic', body, subresource: 'status' }, signal);
      } else if (plan.addresses !== undefined) {
        const body = { metadata: guard, status: { addresses: plan.addresses } };
        current = await kube.patch(NODES, ref, { kind: 'merge', body, subresource: 'status' }, signal);
        isStatusWritten = true;
      } else {
        const { metadata = {}, spec } = plan;
        if (spec === undefined && Object.keys(metadata).length === 0)
          return { kind: isStatusWritten ? 'updated' : 'unchanged' };
        const body = { metadata: { ...metadata, ...guard }, ...(spec === undefined ? {} : { spec }) };
        await kube.patch(NODES, ref, { kind: 'merge', body }, signal);
        return { kind: spec?.['taints'] === undefined ? 'updated' : 'initialized' };
      }
      if (step < MAX_STEPS) continue;
    } catch (error) {
      if (!isKubeError(error, 'CONFLICT', 'NOT_FOUND') || step >= MAX_STEPS) throw error;
    }
    const read = await kube.get(NODES, ref, signal);
    if (read === undefined || read.metadata.uid !== uid) return { kind: 'gone' };
    current = read;
    if (step >= MAX_STEPS) return { kind: 'updated' };
  }
}
