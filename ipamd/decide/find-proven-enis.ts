import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { CloudSnapshot, Ids } from './decision.ts';
import type { Drift } from './evaluate-drift.ts';
import { rebuildStatus } from './rebuild-status.ts';
import { withCounts } from './with-enis.ts';

/** What is known beside object and description. */
type ProofFacts = {
  /** Addresses of live Pods that no ENI of the object has. */
  readonly strayIps: ReadonlySet<string>;
  /** Claims by their static address. */
  readonly reservedIps?: ReadonlyMap<string, string> | undefined;
};

/** Ids of a comparison: none of them is ever written. */
const NO_IDS: Ids = { next: () => 'compared', now: () => '1970-01-01T00:00:00Z' };

/**
 * Lists the ENIs of which one description is proof enough, because another source says the same: a live Pod uses an
 * address that is described and not in the object, or the counts in the object are those of the description and not of
 * the ENIs in it. One description alone may be old.
 */
export function findProvenEnis(
  status: NodeEniConfigStatus,
  snapshot: CloudSnapshot,
  drifts: readonly Drift[],
  facts: ProofFacts,
): ReadonlySet<string> {
  if (snapshot.isComplete && areCountsOf(status, snapshot)) return new Set(drifts.map(({ eniID }) => eniID));
  return new Set(drifts.filter((drift) => isUsed(drift, snapshot, facts)).map(({ eniID }) => eniID));
}

function areCountsOf(status: NodeEniConfigStatus, snapshot: CloudSnapshot): boolean {
  if (withCounts(status) === status) return false;
  const described = rebuildStatus(status, {}, snapshot, NO_IDS);
  return (
    described.routeENIs === status.routeENIs &&
    described.routeENIIPs === status.routeENIIPs &&
    described.directENIs === status.directENIs
  );
}

function isUsed({ kind, eniID, ip }: Drift, { enis }: CloudSnapshot, { strayIps, reservedIps }: ProofFacts): boolean {
  const { ips = [], primaryIP = '' } = enis.get(eniID) ?? {};
  if (kind === 'eni-unknown') return [...ips, primaryIP].some((one) => strayIps.has(one));
  // A static address may be on its way to another node while its former Pod still ends.
  return kind === 'address-unknown' && ip !== undefined && strayIps.has(ip) && reservedIps?.has(ip) !== true;
}
