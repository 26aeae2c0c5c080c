import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { CloudSnapshot, Ids } from './decision.ts';
import { rebuildStatus } from './rebuild-status.ts';
import { isSameData } from './same-data.ts';
import { withCounts } from './with-enis.ts';

/** One difference between the object and the cloud. */
type Drift = {
  readonly kind:
    | 'eni-missing'
    | 'eni-unknown'
    | 'eni-state'
    | 'eni-fields'
    | 'address-missing'
    | 'address-unknown'
    | 'security-groups';
  readonly eniID: string;
  readonly ip?: string;
};

/**
 * Lists each difference between object and cloud that no call in flight explains: exactly what {@link rebuildStatus}
 * would repair.
 */
export function evaluateDrift(status: NodeEniConfigStatus, snapshot: CloudSnapshot): readonly Drift[] {
  const rebuilt = asDescribed(status, snapshot);
  if (rebuilt === status) return [];
  const before = new Map((status.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  const after = new Map((rebuilt.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  const absent = [...before.keys()].filter((eniID) => !after.has(eniID));
  return [
    ...absent.map((eniID): Drift => ({ kind: 'eni-missing', eniID })),
    ...[...after].flatMap(([eniID, eni]): readonly Drift[] => {
      const existing = before.get(eniID);
      return existing === undefined ? [{ kind: 'eni-unknown', eniID }] : compare(existing, eni);
    }),
  ];
}

/** Ids of a comparison: none of them is ever written. */
const NO_IDS: Ids = { next: () => 'compared', now: () => '1970-01-01T00:00:00Z' };

function asDescribed(status: NodeEniConfigStatus, snapshot: CloudSnapshot): NodeEniConfigStatus {
  return rebuildStatus(status, {}, snapshot, NO_IDS);
}

function compare(existing: NodeEniInfo, rebuilt: NodeEniInfo): readonly Drift[] {
  const { eniID } = existing;
  const existingIps = new Set((existing.addresses ?? []).map((address) => address.ip));
  const rebuiltIps = new Set((rebuilt.addresses ?? []).map((address) => address.ip));
  const missing = [...existingIps].filter((ip) => !rebuiltIps.has(ip));
  const unknown = [...rebuiltIps].filter((ip) => !existingIps.has(ip));
  const drifts: readonly Drift[] = [
    ...(existing.state === rebuilt.state ? [] : [{ kind: 'eni-state' as const, eniID }]),
    ...(isSameData(existing.securityGroups, rebuilt.securityGroups)
      ? []
      : [{ kind: 'security-groups' as const, eniID }]),
    ...missing.map((ip) => ({ kind: 'address-missing' as const, eniID, ip })),
    ...unknown.map((ip) => ({ kind: 'address-unknown' as const, eniID, ip })),
  ];
  if (drifts.length > 0 || isSameData(existing, rebuilt)) return drifts;
  return [{ kind: 'eni-fields', eniID }];
}

/** Returns a text that identifies a difference. */
export function driftKey({ kind, eniID, ip }: Drift): string {
  return [kind, eniID, ...(ip === undefined ? [] : [ip])].join('/');
}

/** Returns the ENI of a key that {@link driftKey} returned. */
export function driftEniOf(key: string): string {
  return key.split('/')[1] ?? '';
}

/** What is known beside object and description. */
type ProofFacts = {
  /** Addresses of live Pods that no ENI of the object has. */
  readonly strayIps: ReadonlySet<string>;
  /** Claims by their static address. */
  readonly reservedIps?: ReadonlyMap<string, string> | undefined;
};

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
  const described = asDescribed(status, snapshot);
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
