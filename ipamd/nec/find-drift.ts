import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { CloudSight, Ids } from './decision.ts';
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
export function findDrift(status: NodeEniConfigStatus, sight: CloudSight): readonly Drift[] {
  const rebuilt = rebuildStatus(status, {}, sight, NO_IDS);
  if (rebuilt === status) return [];
  const before = new Map((status.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  const after = new Map((rebuilt.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  const gone = [...before.keys()].filter((eniID) => !after.has(eniID));
  return [
    ...gone.map((eniID): Drift => ({ kind: 'eni-missing', eniID })),
    ...[...after].flatMap(([eniID, eni]): readonly Drift[] => {
      const held = before.get(eniID);
      return held === undefined ? [{ kind: 'eni-unknown', eniID }] : compare(held, eni);
    }),
  ];
}

function compare(held: NodeEniInfo, mended: NodeEniInfo): readonly Drift[] {
  const { eniID } = held;
  const heldIps = new Set((held.addresses ?? []).map((address) => address.ip));
  const mendedIps = new Set((mended.addresses ?? []).map((address) => address.ip));
  const missing = [...heldIps].filter((ip) => !mendedIps.has(ip));
  const unknown = [...mendedIps].filter((ip) => !heldIps.has(ip));
  const drifts: readonly Drift[] = [
    ...(held.state === mended.state ? [] : [{ kind: 'eni-state' as const, eniID }]),
    ...(isSameData(held.securityGroups, mended.securityGroups) ? [] : [{ kind: 'security-groups' as const, eniID }]),
    ...missing.map((ip) => ({ kind: 'address-missing' as const, eniID, ip })),
    ...unknown.map((ip) => ({ kind: 'address-unknown' as const, eniID, ip })),
  ];
  if (drifts.length > 0 || isSameData(held, mended)) return drifts;
  return [{ kind: 'eni-fields', eniID }];
}

/** Returns a text that identifies a difference. */
export function driftKey({ kind, eniID, ip }: Drift): string {
  return [kind, eniID, ...(ip === undefined ? [] : [ip])].join('/');
}

/** Returns the ENI of a difference that was written as a word. Pure. */
export function driftEniOf(key: string): string {
  return key.split('/')[1] ?? '';
}
