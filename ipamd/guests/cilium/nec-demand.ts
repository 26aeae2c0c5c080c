import { Contests } from '../../../kube/contest.ts';
import type { KubeClient, ObjectMeta } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import type { NecEntry } from '../../cache/decode-nec.ts';
import type { NodeProblem } from '../../decide/node-view.ts';

/** What is written of a NodeENIConfig: the fields in which elsewhere the node's agent says what it needs. */
export type NecDemand = {
  readonly desiredRouteENIIP: number;
  readonly releasableIPs: readonly { readonly ip: string; readonly assignmentID: string }[];
  readonly observedSupplyEpoch: number;
  /** Only on a node that may have exclusive ENIs: Cilium gives Pods none. */
  readonly desiredDirectENI?: 0;
};

/** Each node has a memory of its own. */
const FIELD = 'demand';
const MAX_DESIRED = 4_096;

/** What was written last of a node's demand, and whether another client keeps changing it. */
export class DemandMemory {
  readonly #contests = new Contests();

  noteWritten(metadata: ObjectMeta, demand: NecDemand, nowMs: number): void {
    this.#contests.note(FIELD, JSON.stringify(demand), metadata, nowMs);
  }

  /** Reports whether a demand that the NodeENIConfig does not have is to be written now. */
  mayWrite({ object }: NecEntry, demand: NecDemand, nowMs: number): boolean {
    // What is written may be refused in part: it is undone where the same is to be written again.
    const isUndone = this.#contests.valueOf(FIELD) === JSON.stringify(demand);
    return this.#contests.ask(FIELD, isUndone, object.metadata, nowMs).waitMs === 0;
  }

  /** Returns that another client writes the demand, while that is so. */
  problems(nowMs: number): readonly NodeProblem[] {
    if (!this.#contests.isContested(FIELD, nowMs)) return [];
    const message =
      "another client writes the demand of the NodeENIConfig again and again: the node's agent has to run with --role=uplinks";
    return [{ reason: 'CiliumDemandContested', message }];
  }
}

/** Returns the demand of a node: addresses wanted, and addresses offered back. */
export function demandOf(
  { decoded }: NecEntry,
  desired: number,
  offers: readonly { readonly ip: string; readonly assignmentId: string }[],
): NecDemand {
  const { spec = {}, status = {} } = decoded ?? {};
  return {
    desiredRouteENIIP: Math.min(desired, MAX_DESIRED),
    releasableIPs: offers.map(({ ip, assignmentId }) => ({ ip, assignmentID: assignmentId })),
    // As an agent's, it never falls: an object of a restored etcd is then described again.
    observedSupplyEpoch: Math.max(status.supplyEpoch ?? 0, spec.observedSupplyEpoch ?? 0),
    ...((spec.maxDirectENI ?? 0) > 0 ? { desiredDirectENI: 0 } : {}),
  };
}

/**
 * Reports whether the NodeENIConfig has this demand. The epoch alone is worth a write only where offers are, which count
 * once it is answered.
 */
export function isSameDemand({ decoded }: NecEntry, demand: NecDemand): boolean {
  const { desiredRouteENIIP, releasableIPs = [], observedSupplyEpoch = 0, desiredDirectENI } = decoded?.spec ?? {};
  const keysOf = (offers: NecDemand['releasableIPs']): string =>
    offers
      .map(({ ip, assignmentID }) => `${ip} ${assignmentID}`)
      .sort()
      .join();
  return (
    desiredRouteENIIP === demand.desiredRouteENIIP &&
    keysOf(releasableIPs) === keysOf(demand.releasableIPs) &&
    (demand.desiredDirectENI === undefined || desiredDirectENI === demand.desiredDirectENI) &&
    (demand.releasableIPs.length === 0 || observedSupplyEpoch === demand.observedSupplyEpoch)
  );
}

/**
 * Writes a node's demand into its NodeENIConfig, as it was read, and returns its metadata; undefined: it is another one by
 * now. @throws KubeError
 */
export async function writeDemand(
  kube: KubeClient,
  nec: NecEntry,
  demand: NecDemand,
  signal: AbortSignal,
): Promise<ObjectMeta | undefined> {
  const { uid, resourceVersion } = nec.object.metadata;
  const body = { metadata: { uid, resourceVersion }, spec: demand };
  try {
    return (await kube.patch(NODE_ENI_CONFIGS, { name: nec.name }, { kind: 'merge', body }, signal)).metadata;
  } catch (error) {
    if (isKubeError(error, 'CONFLICT', 'NOT_FOUND')) return undefined;
    throw error;
  }
}
