import type { BlockCounts } from '../../../crd/pod-cidr-record.ts';
import { involvedObject } from '../../../kube/involved-object.ts';
import { LastReports, Reporter } from '../../../kube/reporter.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { joinLimited } from '../../../runtime/limit-text.ts';
import type { Term } from '../../calls/term.ts';
import { involvedConfigMap } from '../../config/involved-config-map.ts';
import type { IpamdConfig } from '../../config/options.ts';
import type { IpamdEventReason } from '../../events/event-reasons.ts';
import type { CidrNode } from './block-state.ts';
import type { ForeignCidr } from './second-allocator.ts';

/** Where it is reported what people are to know about podCIDRs. */
type ReportDeps = Pick<Term, 'events' | 'log' | 'metrics'> & {
  readonly config: Pick<IpamdConfig, 'namespace' | 'configMap'>;
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
  readonly #last = new LastReports();
  /** Of the whole cluster. */
  readonly #cluster: Reporter<Problem['reason']>;

  constructor(deps: ReportDeps) {
    this.#deps = deps;
    this.#cluster = new Reporter('the allocation of podCIDRs', deps);
  }

  /** Reports all present problems. */
  report(problems: readonly Problem[]): void {
    const { events, log, metrics } = this.#deps;
    for (const { reason, node, uid, message } of this.#last.note('', problems) ?? []) {
      events.record({ involved: involvedObject(NODES, { name: node, uid }), type: 'Warning', reason, message });
      log.warn('a podCIDR has a problem', { node, reason, message });
    }
    const shown = problems.map(({ reason, node }) => ({ kind: reason, name: node }));
    metrics.problems.reportOfTerm('pod-cidrs', shown);
  }

  /** Reports what concerns the whole cluster: another allocator, for which ours has stopped; subnets of the VPC that overlap. */
  reportCluster(found: ForeignCidr | undefined, clusterCidrs: readonly string[], subnets: readonly string[]): void {
    const overlap = `--cluster-cidr ${clusterCidrs.join(', ')} overlaps subnets of the VPC: ${joinLimited([...subnets].sort())}; no node gets these blocks, and Pods do not reach those subnets where a route of a podCIDR covers them`;
    this.#cluster.report(involvedConfigMap(this.#deps.config), [
      ...(found === undefined ? [] : [stoppedProblem(found)]),
      ...(subnets.length === 0 ? [] : [{ reason: 'CIDROverlap', message: overlap } as const]),
    ]);
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
