import type { Instance } from '../../cloud/cloud.ts';
import type { CloudNode } from '../nodes/cloud-node.ts';
import { readSeen } from '../nodes/seen-instance.ts';
import type { Observation } from './observations.ts';

/** Key and effect of the taint of a Node whose instance is shut down. */
export const SHUTDOWN_TAINT = { key: 'node.cloudprovider.kubernetes.io/shutdown', effect: 'NoSchedule' } as const;

/** What becomes of a Node. `kept`: its instance is gone by the cloud's answers, and that is not enough to delete it. */
export type NodeAction =
  | { readonly kind: 'none' | 'taint' | 'untaint' | 'delete' }
  | { readonly kind: 'kept'; readonly why: string };

/** What decides about a Node. */
type ActionFacts = {
  readonly node: Pick<CloudNode, 'isReady' | 'isOurs' | 'isLeaving' | 'taints' | 'annotations' | 'providerId'>;
  readonly observation: Observation;
  /** VPC of the cluster; undefined while it is not known. */
  readonly vpcId: string | undefined;
  /** Milliseconds since the Node was created. */
  readonly ageMs: number;
  /** Another Node that names the same instance. */
  readonly rival: string | undefined;
};

/** Two complete answers that lack the instance. */
const MISSES_UNTIL_GONE = 2;
/** An answer may be as of a minute ago, and lack an instance that is younger. */
const MIN_AGE_MS = 120_000;
const NEVER_DESCRIBED = 'its instance was never described in this VPC; delete the Node if its instance is gone';
const NO_INSTANCE =
  'no answer of the cloud has any instance of the VPC, as with a key of another account or another --region; delete the Node if no instance is left';
const NONE: NodeAction = { kind: 'none' };

/** Decides what becomes of a Node. A Node is only deleted for an instance that was once described in this VPC. */
export function decideAction({ node, observation, vpcId, ageMs, rival }: ActionFacts): NodeAction {
  if (!node.isOurs || node.isLeaving || node.providerId.kind !== 'instance') return NONE;
  const isTainted = node.taints.some(({ key }) => key === SHUTDOWN_TAINT.key);
  if (node.isReady) return isTainted ? { kind: 'untaint' } : NONE;
  const { instance, misses, unproven } = observation;
  if (unproven >= MISSES_UNTIL_GONE && ageMs >= MIN_AGE_MS) return { kind: 'kept', why: NO_INSTANCE };
  if (misses === 0) return instance !== undefined && isShutDown(instance) && !isTainted ? { kind: 'taint' } : NONE;
  if (misses < MISSES_UNTIL_GONE || ageMs < MIN_AGE_MS) return NONE;
  if (vpcId === undefined) return { kind: 'kept', why: 'the VPC of the cluster is not known; set --vpc-id' };
  if (rival !== undefined) return { kind: 'kept', why: `Node ${rival} names the same instance` };
  const seen = readSeen(node);
  const { instanceId } = node.providerId;
  const describedIn = instance?.vpcId === '' ? undefined : instance?.vpcId;
  const seenIn = describedIn ?? (seen?.instanceId === instanceId ? seen.vpcId : undefined);
  if (seenIn === undefined) return { kind: 'kept', why: NEVER_DESCRIBED };
  if (seenIn !== vpcId) return { kind: 'kept', why: `its instance was in ${seenIn}, the cluster is in ${vpcId}` };
  return { kind: 'delete' };
}

const STOPPED: readonly string[] = ['STOPPED', 'SHUTDOWN'];
const RESTRICTED: readonly string[] = ['EXPIRED', 'PROTECTIVELY_ISOLATED'];

function isShutDown({ state, restrictState = 'NORMAL' }: Instance): boolean {
  return STOPPED.includes(state) || RESTRICTED.includes(restrictState);
}
