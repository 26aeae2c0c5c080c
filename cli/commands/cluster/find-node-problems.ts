import { bySeverity, type Finding } from '../../../inspection/catalogue/finding.ts';
import type { ClusterNec, ClusterNode } from './cluster-facts.ts';

/** A problem of a node. */
export type NodeProblem = {
  readonly severity: Finding['severity'];
  /** Reason in one word: the reason of a condition, or one of ours. */
  readonly reason: string;
  readonly message: string;
};

/** The present time, and how long a transient state may last. Milliseconds. */
export type GracePeriod = { readonly nowMs: number; readonly graceMs: number };

/**
 * Returns the problems of a node by its objects, the most severe first. An undefined Node means that the cluster has
 * none.
 */
export function findNodeProblems(
  nec: ClusterNec,
  node: ClusterNode | 'unknown' | undefined,
  grace: GracePeriod,
): readonly NodeProblem[] {
  const problems = [
    ...objectProblems(nec),
    ...(nec.status.conditions ?? []).flatMap((condition) => problemOfCondition(condition, grace)),
    ...(node === 'unknown' ? [] : nodeProblems(nec, node, grace)),
  ];
  return problems.toSorted(bySeverity);
}

/** Returns the problem of a Node that has our taint and no NodeENIConfig. */
export function bareNodeProblem(node: ClusterNode, grace: GracePeriod): NodeProblem {
  const message = `the node waits for ipamd: it has ${taintText(node)} and no NodeENIConfig; ${removalOf(node)}`;
  return { severity: isYoung(node.createdMs, grace) ? 'info' : 'error', reason: 'NoNodeENIConfig', message };
}

function objectProblems({ spec, status, faults, deletionRequestedMs }: ClusterNec): readonly NodeProblem[] {
  const [fault, ...more] = faults;
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const [seen, has] = [spec.observedSupplyEpoch ?? 0, status.supplyEpoch ?? 0];
  const old = `the agent has seen supply epoch ${seen}, the object has ${has}: a restored etcd?`;
  return [
    ...problemIf(fault !== undefined, 'error', 'Malformed', `${fault}${rest}`),
    ...problemIf(seen > has, 'warning', 'OldState', old),
    ...problemIf(deletionRequestedMs !== undefined, 'info', 'Leaving', 'its NodeENIConfig is being deleted'),
  ];
}

/** Reasons of conditions that are transient. */
const PASSING: readonly string[] = ['CallUnderWay', 'Draining'];

type Condition = NonNullable<ClusterNec['status']['conditions']>[number];

/** Returns the problem of a condition. Each condition of a NodeENIConfig is good while true. */
function problemOfCondition(
  { type, status, reason, message = '', lastTransitionTime }: Condition,
  grace: GracePeriod,
): readonly NodeProblem[] {
  if (status === 'True') return [];
  // Without supply no Pod starts. What another condition concerns, Pods with shared ENIs do without.
  const isReady = type === 'Ready';
  const problem = isReady ? { reason, message } : { reason: type, message: `${reason}: ${message}` };
  if (!PASSING.includes(reason)) return [{ severity: isReady ? 'error' : 'warning', ...problem }];
  const isOverdue = !isYoung(Date.parse(lastTransitionTime), grace);
  return [{ severity: isOverdue ? 'warning' : 'info', ...problem }];
}

function nodeProblems(nec: ClusterNec, node: ClusterNode | undefined, grace: GracePeriod): readonly NodeProblem[] {
  if (node === undefined) {
    return [{ severity: 'warning', reason: 'NoNode', message: 'the cluster has no Node of this name' }];
  }
  const starting = isYoung(node.createdMs, grace) ? 'info' : 'error';
  return [
    ...problemIf(node.taints.length > 0, starting, 'Tainted', taintedMessage(nec, node)),
    ...problemIf(!node.isReady, 'warning', 'NodeNotReady', `kubelet of ${nec.key} is not ready`),
  ];
}

function taintedMessage({ spec }: ClusterNec, node: ClusterNode): string {
  const kept = `no Pod is sent here while it has ${taintText(node)}`;
  if (spec.desiredRouteENIIP !== undefined) return `the agent does not serve: ${kept}`;
  return `no agent has written to its NodeENIConfig: ${kept}; ${removalOf(node)}`;
}

function taintText({ taints }: ClusterNode): string {
  return `the taint${taints.length === 1 ? '' : 's'} ${taints.join(', ')}`;
}

function removalOf({ key, taints }: ClusterNode): string {
  const removal = `kubectl taint node ${key} ${taints.map((taint) => `${taint}-`).join(' ')}`;
  return `if tke-eni is not to run there: ${removal}`;
}

function problemIf(
  isSo: boolean,
  severity: NodeProblem['severity'],
  reason: string,
  message: string,
): readonly NodeProblem[] {
  return isSo ? [{ severity, reason, message }] : [];
}

function isYoung(sinceMs: number, { nowMs, graceMs }: GracePeriod): boolean {
  return nowMs - sinceMs < graceMs;
}
