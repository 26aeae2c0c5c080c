import { isRecord } from '../runtime/decode.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from './node-eni-config-fields.ts';

type Intent = NonNullable<NodeEniConfigStatus['intents']>[number];

/**
 * ConfigMap in which ipamd publishes the free addresses of subnets: a key for each subnet, a SubnetSupply as JSON under
 * it.
 */
export const SUBNETS_CONFIG_MAP = 'tke-eni-subnets';

/** What ipamd publishes about a subnet. */
export type SubnetSupply = {
  readonly zone: string;
  readonly cidr: string;
  /** Free addresses, minus those that are requested from the cloud. */
  readonly free: number;
  readonly total: number;
  /** Addresses that NodeENIConfigs had, or had on record to request, at the time of `free`. @see countSubnetUsage */
  readonly held: number;
  /** The cloud reported the subnet as full since it was described: ipamd requests nothing from it for a while. */
  readonly blocked?: true;
  /** New ENIs are made in it only for nodes or Pods that name it. */
  readonly onlyNominated?: true;
  /** A subnet of the cluster: ENIs of nodes that name no subnets may be in it. */
  readonly common?: true;
};

/**
 * Reads what ipamd published about one subnet; undefined for a malformed text, so that nothing is known of the subnet.
 */
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

/** How many IPv4 addresses of a subnet are used. */
export type SubnetUsage = { readonly subnetId: string; readonly count: number };

/**
 * Counts the IPv4 addresses that a node's object uses of each subnet: its ENIs with all their addresses, and what is
 * recorded to be requested. ipamd and the scheduler count alike. Growth since ipamd published its numbers is no longer
 * free.
 */
export function countSubnetUsage(status: NodeEniConfigStatus): readonly SubnetUsage[] {
  const counts = new Map<string, number>();
  const add = (subnetId: string | undefined, count: number): void => {
    if (subnetId !== undefined && count > 0) counts.set(subnetId, (counts.get(subnetId) ?? 0) + count);
  };
  for (const eni of status.eniInfos ?? []) {
    const ips = (eni.addresses ?? []).filter(({ ip }) => !ip.includes(':')).length;
    add(eni.subnetID, 1 + ips + countRequested(status, eni));
  }
  for (const intent of pendingCreationsOf(status)) add(intent.subnetID, 1 + countOf(intent));
  return [...counts].map(([subnetId, count]) => ({ subnetId, count }));
}

/** Counts the IPv4 addresses that the objects of nodes use together, by subnet. @see countSubnetUsage */
export function sumSubnetUsage(statuses: Iterable<NodeEniConfigStatus>): ReadonlyMap<string, number> {
  const used = new Map<string, number>();
  for (const status of statuses)
    for (const { subnetId, count } of countSubnetUsage(status)) used.set(subnetId, (used.get(subnetId) ?? 0) + count);
  return used;
}

/** Counts the IPv4 addresses that are recorded to be requested for an ENI; `isFor` selects among the calls. */
export function countRequested(
  { intents = [] }: NodeEniConfigStatus,
  eni: NodeEniInfo,
  isFor: (intent: Intent) => boolean = () => true,
): number {
  const isEmpty = (eni.addresses ?? []).every(({ ip }) => ip.includes(':'));
  const calls = intents.filter(({ action, eniID }) => {
    if (eniID !== eni.eniID) return false;
    return action === 'AssignPrivateIpAddresses' || (action === 'CreateNetworkInterface' && isEmpty);
  });
  return calls.filter(isFor).reduce((sum, intent) => sum + countOf(intent), 0);
}

/** Lists recorded creations whose ENI is not in the object yet. */
export function pendingCreationsOf({ eniInfos = [], intents = [] }: NodeEniConfigStatus): readonly Intent[] {
  return intents.filter(({ action, eniID }) => {
    return action === 'CreateNetworkInterface' && !eniInfos.some((eni) => eni.eniID === eniID);
  });
}

function countOf({ ips, ipCount }: Intent): number {
  return ipCount ?? ips?.length ?? 0;
}
