import { ENI_IP_CONDITION } from '../../crd/names.ts';
import type { NodeCondition } from './node-entry.ts';

/** The body of a strategic patch of `nodes/status`; conditions merge by type, so others stay. */
type NodeConditionPatch = {
  readonly status: { readonly conditions: readonly Readonly<Record<string, string>>[] };
};

const SERVING = { status: 'False', reason: 'Serving', message: 'the agent serves addresses of ENIs' } as const;
const NOT_SERVING = {
  status: 'True',
  reason: 'NotServing',
  message: 'the agent does not serve addresses of ENIs; see the NodeENIConfig of the node',
} as const;

/** The patch that removes the condition ENIIPUnavailable. */
export const CONDITION_REMOVAL: NodeConditionPatch = {
  status: { conditions: [{ type: ENI_IP_CONDITION, $patch: 'delete' }] },
};

/** Decides the condition ENIIPUnavailable of a VPC-CNI node. Undefined: it is up to date. */
export function decideNodeCondition(
  current: NodeCondition | undefined,
  isServing: boolean,
  nowText: string,
): NodeConditionPatch | undefined {
  const required = isServing ? SERVING : NOT_SERVING;
  if (current?.status === required.status && current.reason === required.reason) return undefined;
  const since = current?.status === required.status ? current.lastTransitionTime : undefined;
  const times = { lastHeartbeatTime: nowText, lastTransitionTime: since ?? nowText };
  return { status: { conditions: [{ type: ENI_IP_CONDITION, ...required, ...times }] } };
}
