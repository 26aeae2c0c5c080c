import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { CloudSnapshot, Ids } from './decision.ts';
import { rebuildStatus } from './rebuild-status.ts';
import { isSameData } from './same-data.ts';

/** One difference between the object and the cloud. */
export type Drift = {
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

/** Ids of a comparison: none of them is ever written. */
const NO_IDS: Ids = { next: () => 'compared', now: () => '1970-01-01T00:00:00Z' };

/**
 * Lists each difference between object and cloud that no call in flight explains: exactly what {@link rebuildStatus}
 * would repair.
 */
export function evaluateDrift(status: NodeEniConfigStatus, snapshot: CloudSnapshot): readonly Drift[] {
  const rebuilt = rebuildStatus(status, {}, snapshot, NO_IDS);
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
