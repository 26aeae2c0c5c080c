import { DIRECT_ENI_TAINT, ENI_IP_TAINT } from '../../crd/names.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODES } from '../../kube/resource-types.ts';
import { CONDITION_REMOVAL, decideNodeCondition } from './decide-node-condition.ts';
import { decideTaints, taintPatch } from './decide-taint.ts';
import { decodeNode, type NodeEntry, type NodeTaint } from './node-entry.ts';

/** The required marks of a Node: taints and condition. */
type RequiredMarks = {
  /** The agent serves addresses. */
  readonly isServing: boolean;
  /** Whether the node is to serve exclusive ENIs, and whether its agent serves them. Default: it is not to. */
  readonly direct?: { readonly isServed: boolean; readonly isServing: boolean };
  /**
   * Pods that name no network are on the node's bridge: no mark may keep them off, whoever made it. The extended
   * resource alone keeps off those that need an ENI. Default: false.
   */
  readonly isBridged?: boolean;
  /** --enable-node-taint */
  readonly putsTaintOn: boolean;
  /** --enable-node-condition */
  readonly writesCondition: boolean;
  /** RFC 3339 */
  readonly nowText: string;
};

/** Other clients may change the same taints: kubelets and autoscalers settle within two rounds. */
const ATTEMPTS = 4;

/**
 * Brings the taint and the condition of a VPC-CNI node up to date. Idempotent; writes nothing when they are. Returns
 * what was done to the taint.
 * @throws KubeError when others keep changing the taints, and whatever the client throws
 */
export async function ensureServingMarks(
  kube: KubeClient,
  node: NodeEntry,
  required: RequiredMarks,
  signal: AbortSignal,
): Promise<'put-on' | 'taken-off' | 'unchanged'> {
  const { direct, isBridged = false, putsTaintOn } = required;
  const isShared = isBridged || required.isServing;
  const done = await ensureTaint(kube, node, { isServing: isShared, putsTaintOn, taint: ENI_IP_TAINT }, signal);
  // On a node that serves no exclusive ENIs the taint would keep every Pod off for ever.
  const isServing = isBridged || direct?.isServed !== true || direct.isServing;
  await ensureTaint(kube, node, { isServing, putsTaintOn, taint: DIRECT_ENI_TAINT }, signal);
  const patch = conditionPatch(node, required);
  if (patch !== undefined)
    await kube.patch(NODES, { name: node.name }, { kind: 'strategic', body: patch, subresource: 'status' }, signal);
  return done;
}

function conditionPatch({ eniIpCondition }: NodeEntry, { isBridged, ...required }: RequiredMarks) {
  if (isBridged === true) return eniIpCondition === undefined ? undefined : CONDITION_REMOVAL;
  if (!required.writesCondition) return undefined;
  return decideNodeCondition(eniIpCondition, required.isServing, required.nowText);
}

async function ensureTaint(
  kube: KubeClient,
  node: NodeEntry,
  { isServing, putsTaintOn, taint }: Pick<RequiredMarks, 'isServing' | 'putsTaintOn'> & { readonly taint: NodeTaint },
  signal: AbortSignal,
): Promise<'put-on' | 'taken-off' | 'unchanged'> {
  let current = node;
  for (let attempt = 1; ; attempt++) {
    const taints = decideTaints(current.taints, isServing, putsTaintOn, taint);
    if (taints === undefined) return 'unchanged';
    try {
      await kube.patch(NODES, { name: node.name }, { kind: 'json', body: taintPatch(current, taints) }, signal);
      return isServing ? 'taken-off' : 'put-on';
    } catch (error) {
      // The server answers INVALID to a patch whose test fails.
      if (!isKubeError(error, 'CONFLICT', 'INVALID') || attempt >= ATTEMPTS) throw error;
    }
    const read = await kube.get(NODES, { name: node.name }, signal);
    if (read === undefined || read.metadata.uid !== node.uid) return 'unchanged';
    current = decodeNode(read);
  }
}
