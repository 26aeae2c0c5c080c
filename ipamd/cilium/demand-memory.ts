import { compareVersions } from '../../kube/compare-versions.ts';
import type { ObjectMeta } from '../../kube/kube-client.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeProblem } from '../decide/node-view.ts';
import { isSameData } from '../decide/same-data.ts';
import type { NecDemand } from './cilium-node-writer.ts';

/** One that undoes a write might not have known of it; three times it means to. */
const CONTESTED = 3;
/** Between writes against one who undoes them, twice as long each time. */
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;
/** Without another one this long after the last contest is over. */
const OVER_MS = 300_000;
/** A watch is not behind for longer. */
const BEHIND_MS = 30_000;
const MAX_DESIRED = 4_096;

/** What was written last of a node's demand, and whether another client keeps changing it. */
export class DemandMemory {
  #written: { readonly metadata: ObjectMeta; readonly demand: NecDemand; readonly atMs: number } | undefined;
  #contests = 0;
  #contestMs = Number.NEGATIVE_INFINITY;

  noteWritten(metadata: ObjectMeta, demand: NecDemand, nowMs: number): void {
    this.#written = { metadata, demand, atMs: nowMs };
  }

  /** Tells whether a demand that the NodeENIConfig does not have is to be written now. */
  mayWrite({ object }: NecEntry, demand: NecDemand, nowMs: number): boolean {
    const written = this.#written;
    const order = written === undefined ? undefined : compareVersions(object.metadata, written.metadata);
    // The cache has not received the own write yet; after long it is the state of a restored etcd.
    if (written !== undefined && order !== undefined && order < 0) return nowMs - written.atMs > BEHIND_MS;
    if (nowMs - this.#contestMs > OVER_MS) this.#contests = 0;
    if (order === undefined || !isSameData(written?.demand, demand)) return true;
    const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#contests);
    if (this.#contests >= CONTESTED && nowMs - this.#contestMs < waitMs) return false;
    this.#contests += 1;
    this.#contestMs = nowMs;
    return true;
  }

  /** Returns that another client writes the demand, while that is so. */
  problems(nowMs: number): readonly NodeProblem[] {
    if (this.#contests < CONTESTED || nowMs - this.#contestMs > OVER_MS) return [];
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
    // As an agent's, it never falls: an object of a restored etcd is then described anew.
    observedSupplyEpoch: Math.max(status.supplyEpoch ?? 0, spec.observedSupplyEpoch ?? 0),
    ...((spec.maxDirectENI ?? 0) > 0 ? { desiredDirectENI: 0 } : {}),
  };
}

/**
 * Tells whether the NodeENIConfig has this demand. The epoch alone is worth a write only where offers are, which count
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
