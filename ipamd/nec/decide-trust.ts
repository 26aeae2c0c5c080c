import type { NodeEniConfigSpec, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';

/** What a node's object said when it was first seen in a list: nothing shows that it is not older than it looks. */
export type Baseline = {
  /** Which list it came from. */
  readonly listings: number;
  /** The highest epoch that was in it. */
  readonly epoch: number;
};

/** Takes the baseline of an object that came out of a list. Pure. */
export function baselineOf(spec: NodeEniConfigSpec, status: NodeEniConfigStatus, listings: number): Baseline {
  return { listings, epoch: Math.max(status.supplyEpoch ?? 0, spec.observedSupplyEpoch ?? 0) };
}

/**
 * Returns spec and status as decisions may use them. Pure.
 *
 * An etcd that was restored from a backup brings back offers that the agent has taken back since, with the very
 * assignment ids that they had; and where nothing but that happened in between, no epoch shows it. So the offers of an
 * object that came out of a list count only once the agent has written since: ipamd raises the epoch, which the agent
 * answers in a write that has its offers of now. A restore breaks every watch, and what is seen then comes out of a list.
 */
export function withConfirmedOffers(
  spec: NodeEniConfigSpec,
  status: NodeEniConfigStatus,
  baseline: Baseline,
): { readonly spec: NodeEniConfigSpec; readonly status: NodeEniConfigStatus } {
  const isConfirmed = (spec.observedSupplyEpoch ?? 0) > baseline.epoch;
  if (isConfirmed || !hasOffers(spec, status)) return { spec, status };
  const { releasableIPs: _unconfirmed, releasableENIs: _neither, ...rest } = spec;
  const isAsked = (status.supplyEpoch ?? 0) > baseline.epoch;
  return { spec: rest, status: isAsked ? status : { ...status, supplyEpoch: baseline.epoch + 1 } };
}

/** Offers of what is gone already, or on its way, need nobody's word. */
function hasOffers(
  { releasableIPs = [], releasableENIs = [] }: NodeEniConfigSpec,
  { eniInfos = [] }: NodeEniConfigStatus,
): boolean {
  const offeredEnis = new Map(releasableENIs.map(({ eniID, assignmentID }) => [eniID, assignmentID]));
  const isOffered = ({ eniID, assignmentID, state }: NodeEniInfo) =>
    state === 'Attached' && assignmentID !== undefined && offeredEnis.get(eniID) === assignmentID;
  if (eniInfos.some(isOffered)) return true;
  const offered = new Map(releasableIPs.map(({ ip, assignmentID }) => [ip, assignmentID]));
  return eniInfos.some((eni) =>
    (eni.addresses ?? []).some(
      ({ ip, assignmentID, state }) => state === 'Assigned' && offered.get(ip) === assignmentID,
    ),
  );
}
