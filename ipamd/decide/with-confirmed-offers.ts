import type { NodeEniConfigSpec, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';

/**
 * State of a node's object when it first came out of a list: nothing shows whether it is an older state that was
 * restored.
 */
export type Baseline = {
  /** Number of the list that it came from. */
  readonly listings: number;
  /** The highest epoch in the object. */
  readonly epoch: number;
};

/** Returns the baseline of an object that came out of a list. */
export function baselineOf(spec: NodeEniConfigSpec, status: NodeEniConfigStatus, listings: number): Baseline {
  return { listings, epoch: Math.max(status.supplyEpoch ?? 0, spec.observedSupplyEpoch ?? 0) };
}

/**
 * Returns spec and status as decisions may use them.
 *
 * An etcd that was restored from a backup brings back offers that the agent has withdrawn since, with the same
 * assignment ids. If nothing else happened in between, no epoch shows it. So the offers of an object from a list count
 * only once the agent has written again: ipamd raises the epoch, and the agent answers with a write that contains its
 * present offers. A restore breaks every watch, so that the state after it comes from a list.
 */
export function withConfirmedOffers(
  spec: NodeEniConfigSpec,
  status: NodeEniConfigStatus,
  baseline: Baseline,
): { readonly spec: NodeEniConfigSpec; readonly status: NodeEniConfigStatus } {
  const isConfirmed = (spec.observedSupplyEpoch ?? 0) > baseline.epoch;
  if (isConfirmed || !hasOffers(spec, status)) return { spec, status };
  const { releasableIPs: _unconfirmed, releasableENIs: _neither, ...rest } = spec;
  const isRaised = (status.supplyEpoch ?? 0) > baseline.epoch;
  return { spec: rest, status: isRaised ? status : { ...status, supplyEpoch: baseline.epoch + 1 } };
}

/**
 * Reports whether the object contains a valid offer. An offer of an address that is no longer Assigned, or of an ENI that
 * is no longer Attached, needs no confirmation.
 */
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
