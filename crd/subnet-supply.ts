import { isRecord } from '../runtime/decode.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from './node-eni-config-fields.ts';

type Intent = NonNullable<NodeEniConfigStatus['intents']>[number];

/** ConfigMap in which ipamd tells what subnets have left; a key for each subnet, a SubnetSupply as JSON under it. */
export const SUBNETS_CONFIG_MAP = 'tke-eni-subnets';

/** What ipamd tells of a subnet. */
export type SubnetSupply = {
  readonly zone: string;
  readonly cidr: string;
  /** Addresses that are left, less those that are asked for. */
  readonly free: number;
  readonly total: number;
  /** Addresses that NodeENIConfigs had, or had on record to ask for, when `free` was true. @see heldIn */
  readonly held: number;
  /** Found full by the cloud since it was described: nothing is asked of it for a while. */
  readonly blocked?: true;
  /** New ENIs are made in it only for who names it. */
  readonly onlyNominated?: true;
  /** One of the cluster's: ENIs of nodes that name none may be of it. */
  readonly common?: true;
};

/** Reads what ipamd wrote of one subnet; undefined for what is malformed, of which nothing is known then. Pure. */
export function readSubnetSupply(text: unknown): SubnetSupply | undefined {
  const value = parsed(text);
  if (!isRecord(value)) return undefined;
  const { zone, cidr, free, total, held, blocked, onlyNominated, common } = value;
  if (typeof zone !== 'string' || typeof cidr !== 'string') return undefined;
  if (!isCount(free) || !isCount(total) || !isCount(held)) return undefined;
  return {
    ...{ zone, cidr, free, total, held },
    ...(blocked === true ? { blocked } : {}),
    ...(onlyNominated === true ? { onlyNominated } : {}),
    ...(common === true ? { common } : {}),
  };
}

function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** How many IPv4 addresses of a subnet something takes. */
export type Held = { readonly subnetId: string; readonly count: number };

/**
 * Counts the IPv4 addresses that a node's object takes of each subnet: ENIs with all that is on them, and what is on record
 * to be asked for. ipamd and the scheduler count alike: what it has grown by since ipamd said how many are left is left no
 * more. Pure.
 */
export function heldIn(status: NodeEniConfigStatus): readonly Held[] {
  const counts = new Map<string, number>();
  const add = (subnetId: string | undefined, count: number): void => {
    if (subnetId !== undefined && count > 0) counts.set(subnetId, (counts.get(subnetId) ?? 0) + count);
  };
  for (const eni of status.eniInfos ?? []) {
    const ips = (eni.addresses ?? []).filter(({ ip }) => !ip.includes(':')).length;
    add(eni.subnetID, 1 + ips + askedFor(status, eni));
  }
  for (const intent of unseenCreationsOf(status)) add(intent.subnetID, 1 + countOf(intent));
  return [...counts].map(([subnetId, count]) => ({ subnetId, count }));
}

/** Counts the IPv4 addresses that are on record to be asked for on an ENI; `isFor` leaves some calls out. Pure. */
export function askedFor(
  { intents = [] }: NodeEniConfigStatus,
  eni: NodeEniInfo,
  isFor: (intent: Intent) => boolean = () => true,
): number {
  const isEmpty = (eni.addresses ?? []).every(({ ip }) => ip.includes(':'));
  const own = intents.filter(({ action, eniID }) => {
    if (eniID !== eni.eniID) return false;
    return action === 'AssignPrivateIpAddresses' || (action === 'CreateNetworkInterface' && isEmpty);
  });
  return own.filter(isFor).reduce((sum, intent) => sum + countOf(intent), 0);
}

/** Lists creations on record whose ENI is not in the object yet. Pure. */
export function unseenCreationsOf({ eniInfos = [], intents = [] }: NodeEniConfigStatus): readonly Intent[] {
  return intents.filter(({ action, eniID }) => {
    return action === 'CreateNetworkInterface' && !eniInfos.some((eni) => eni.eniID === eniID);
  });
}

function countOf({ ips, ipCount }: Intent): number {
  return ipCount ?? ips?.length ?? 0;
}
