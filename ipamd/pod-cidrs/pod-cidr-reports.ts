import type { BlockCounts } from '../../crd/pod-cidr-record.ts';
import { involvedNode } from '../../kube/involved-node.ts';
import { joinLimited } from '../../runtime/limit-text.ts';
import type { Logger } from '../../runtime/log.ts';
import type { IpamdEventReason } from '../events/event-reasons.ts';
import type { NodeEvents } from '../supply/node-deps.ts';
import type { CidrConflict, CidrNode } from './block-state.ts';
import type { ForeignCidr } from './second-allocator.ts';

/** Callbacks for podCIDRs; the metrics use them. */
export type PodCidrObserver = {
  readonly onBlocks?: (counts: BlockCounts) => void;
  /** A write of a podCIDR has ended. */
  readonly onWrite?: (outcome: string) => void;
  /** Every present problem; an empty list when there are none. */
  readonly onProblems?: (problems: readonly { readonly kind: string; readonly name: string }[]) => void;
};

/** Where it is reported what people are to know about podCIDRs. */
type ReportDeps = {
  readonly events: NodeEvents;
  readonly log: Logger;
  readonly observe: PodCidrObserver;
  /** Of ipamd: events about the whole cluster are recorded on it. */
  readonly configMap: { readonly namespace: string; readonly name: string };
};

type Problem = {
  readonly reason: IpamdEventReason;
  readonly node: string;
  readonly uid: string;
  readonly message: string;
};

/** Reports problems of podCIDRs, each once for each change of its text: event, log, metric. */
export class PodCidrReports {
  readonly #deps: ReportDeps;
  #reported = new Map<string, string>();
  #overlap = '';
  #stopped = '';

  constructor(deps: ReportDeps) {
    this.#deps = deps;
  }

  /** Reports all present problems. */
  report(problems: readonly Problem[]): void {
    const { events, log, observe } = this.#deps;
    const reported = new Map<string, string>();
    for (const { reason, node, uid, message } of problems) {
      const key = `${reason}/${node}/${uid}`;
      reported.set(key, message);
      if (this.#reported.get(key) === message) continue;
      events.record({ involved: involvedNode({ name: node, uid }), type: 'Warning', reason, message });
      log.warn('a podCIDR has a problem', { node, reason, message });
    }
    this.#reported = reported;
    observe.onProblems?.(problems.map(({ reason, node }) => ({ kind: reason, name: node })));
  }

  /** Reports subnets of the VPC that overlap the networks of Pods, once for each change. */
  reportVpcOverlap(clusterCidrs: readonly string[], subnets: readonly string[]): void {
    const { events, log, configMap } = this.#deps;
    const now = joinLimited([...subnets].sort());
    if (now === this.#overlap) return;
    this.#overlap = now;
    if (subnets.length === 0) return;
    const message = `--cluster-cidr ${clusterCidrs.join(', ')} overlaps subnets of the VPC: ${now}; no node gets these blocks, and Pods do not reach those subnets where a route of a podCIDR covers them`;
    events.record({
      involved: { apiVersion: 'v1', kind: 'ConfigMap', ...configMap },
      type: 'Warning',
      reason: 'CIDROverlap',
      message,
    });
    log.warn('networks of Pods overlap the VPC', { clusterCidrs, subnets: now });
  }

  /** Reports that another allocator was found and that ours has stopped, where it is found besides the Node; once. */
  reportStopped(found: ForeignCidr): void {
    const { events, log, configMap } = this.#deps;
    const { reason, message } = stoppedProblem(found);
    if (message === this.#stopped) return;
    this.#stopped = message;
    events.record({
      involved: { apiVersion: 'v1', kind: 'ConfigMap', ...configMap },
      type: 'Warning',
      reason,
      message,
    });
    log.error('podCIDRs are no longer allocated', { node: found.node, why: message });
  }
}

/** Renders why no podCIDR is given any more. */
export function renderStopped({ node, cidr }: ForeignCidr): string {
  return `Node ${node} got podCIDR ${cidr} from another allocator: two would give one block to two nodes, so ipamd gives none. Switch off kube-controller-manager's (--allocate-node-cidrs=false) and restart all replicas of ipamd; or leave the blocks to it, and unset ipamd's --allocate-node-cidrs`;
}

/** Renders the Node by which another allocator was found. */
export function stoppedProblem(found: ForeignCidr): Problem {
  return { reason: 'CIDRAllocatorConflict', node: found.node, uid: found.uid, message: renderStopped(found) };
}

/** Renders that no block is left for a node. */
export function unservedProblem(
  { name, uid }: CidrNode,
  { held, free }: BlockCounts,
  clusterCidrs: readonly string[],
): Problem {
  const left =
    held > 0 ? `${held} blocks are held until their routes are gone or --pod-cidr-hold is over` : 'none is held';
  const message = `no block of ${clusterCidrs.join(', ')} is free for its podCIDR (${free} free; ${left}); add a network to --cluster-cidr, or delete Nodes that are not needed`;
  return { reason: 'CIDRNotAvailable', node: name, uid, message };
}

/** Renders that a write failed, and is tried again. */
export function failedProblem(
  node: { readonly name: string; readonly uid: string },
  cidr: string,
  why: string,
): Problem {
  const message = `podCIDR ${cidr} could not be written: ${why}; it will be tried again`;
  return { reason: 'CIDRAssignmentFailed', node: node.name, uid: node.uid, message };
}

/** Renders a podCIDR that does not fit with the others. */
export function conflictProblem({ reason, node, uid, message }: CidrConflict): Problem {
  return { reason, node, uid, message };
}
