import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from './claim-marks.ts';

/** Indexes of NodeENIConfigs: by the key of a claim that they name, and by a marked address. */
export const NECS_BY_CLAIM = 'claim';
/** See {@link NECS_BY_CLAIM}. */
export const NECS_BY_MARKED_IP = 'marked-ip';

/** Lists the claims that a node's status names, in marks and in calls; the keys of an index. */
export function readClaimKeys(status: NodeEniConfigStatus | undefined): readonly string[] {
  const marks = (status?.eniInfos ?? []).flatMap(({ claim, addresses = [] }) => [
    ...(claim === undefined ? [] : [claimKeyOf(claim)]),
    ...addresses.flatMap((one) => (one.claim === undefined ? [] : [claimKeyOf(one.claim)])),
  ]);
  const called = (status?.intents ?? []).flatMap(({ claim }) => claim ?? []);
  const keys = [...marks, ...called];
  return keys.length === 0 ? NONE : [...new Set(keys)];
}

/** Lists the addresses of a node with a mark; the keys of an index. */
export function readMarkedIps(status: NodeEniConfigStatus | undefined): readonly string[] {
  const ips = (status?.eniInfos ?? []).flatMap(({ addresses = [] }) =>
    addresses.flatMap(({ ip, claim }) => (claim === undefined ? [] : [ip])),
  );
  return ips.length === 0 ? NONE : ips;
}

const NONE: readonly string[] = Object.freeze([]);

/** Returns the key of the claim that a node's ENI has the address for; undefined for an address without a mark. */
export function readMarkOf(status: NodeEniConfigStatus | undefined, ip: string): string | undefined {
  const addresses = (status?.eniInfos ?? []).flatMap((eni) => eni.addresses ?? []);
  const mark = addresses.find((one) => one.ip === ip)?.claim;
  return mark === undefined ? undefined : claimKeyOf(mark);
}
