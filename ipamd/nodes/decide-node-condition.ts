import { DIRECT_ENI_CONDITION, ENI_IP_CONDITION } from '../../crd/names.ts';
import type { NodeCondition } from '../cache/node-entry.ts';

/** Conditions of a Node that say what its agent does not serve: addresses of shared ENIs, exclusive ENIs. */
type ServingCondition = typeof ENI_IP_CONDITION | typeof DIRECT_ENI_CONDITION;

/** One condition in a strategic patch of `nodes/status`; conditions merge by type, so others stay. */
export type ConditionPatch = Readonly<Record<string, string>>;

const SERVED = { [ENI_IP_CONDITION]: 'addresses of ENIs', [DIRECT_ENI_CONDITION]: 'exclusive ENIs' } as const;

/**
 * Decides a condition of a VPC-CNI node; undefined: it is up to date. With `isServing` undefined the node has no such
 * condition, as one that is not to serve what the condition is about.
 */
export function decideNodeCondition(
  type: ServingCondition,
  current: NodeCondition | undefined,
  isServing: boolean | undefined,
  nowText: string,
): ConditionPatch | undefined {
  if (isServing === undefined) return current === undefined ? undefined : { type, $patch: 'delete' };
  const required = isServing
    ? { status: 'False', reason: 'Serving', message: `the agent serves ${SERVED[type]}` }
    : {
        status: 'True',
        reason: 'NotServing',
        message: `the agent does not serve ${SERVED[type]}; see the NodeENIConfig of the node`,
      };
  if (current?.status === required.status && current.reason === required.reason) return undefined;
  const since = current?.status === required.status ? current.lastTransitionTime : undefined;
  return { type, ...required, lastHeartbeatTime: nowText, lastTransitionTime: since ?? nowText };
}
