import type { Intent, IntentResult } from '../decide/decision.ts';
import type { RecentChanges } from './recent-changes.ts';

/** Notes what a call changed on a node, and which addresses it took from `sourceNode`. */
export function noteEniChange(
  changes: RecentChanges,
  node: string,
  intent: Intent,
  result: IntentResult,
  sourceNode: string | undefined,
): void {
  const ips = 'eni' in result ? result.eni.ips : 'ips' in result ? result.ips : [];
  const isTaken = result.action === 'UnassignPrivateIpAddresses';
  const from = isTaken ? node : sourceNode;
  for (const ip of ips) {
    if (!isTaken) changes.forget(takenKey(node, ip));
    if (from !== undefined) changes.note(takenKey(from, ip));
  }
  const eniID = 'eni' in result ? result.eni.eniID : (intent.targetENIID ?? intent.eniID ?? '');
  changes.note(eniKey(node, eniID, result.action));
}

/** Reports whether a description that began at `sinceMs` may still show an address that an own call took off an ENI of the node. */
export function isTakenLately(changes: RecentChanges, node: string, ip: string, sinceMs: number): boolean {
  return changes.isRecent(takenKey(node, ip), sinceMs);
}

/**
 * Reports whether a description that began at `sinceMs` may show the effect of a call although it is of before: the opposite
 * was done a moment ago.
 */
export function mayBeOfBefore(changes: RecentChanges, node: string, intent: Intent, sinceMs: number): boolean {
  const madeKey = eniKey(node, intent.eniID ?? '', 'CreateNetworkInterface');
  return changes.mayPrecede(oppositesOf(node, intent), madeKey, sinceMs);
}

function takenKey(node: string, ip: string): string {
  return `${node} ${ip}`;
}

function eniKey(node: string, eniID: string, action: Intent['action']): string {
  return `${node} ${eniID} ${action}`;
}

/** The changes after which what a call makes may have been so before. A creation and a deletion have none, nor has a new address. */
function oppositesOf(node: string, { action, eniID = '', ips = [], claim }: Intent): readonly string[] {
  switch (action) {
    case 'AssignPrivateIpAddresses':
    case 'MigratePrivateIpAddress':
      return ips.map((ip) => takenKey(node, ip));
    case 'UnassignPrivateIpAddresses':
      return (['AssignPrivateIpAddresses', 'MigratePrivateIpAddress'] as const).map((one) => eniKey(node, eniID, one));
    case 'AttachNetworkInterface':
      // An ENI of the pool is attached once.
      return claim === undefined ? [] : [eniKey(node, eniID, 'DetachNetworkInterface')];
    case 'DetachNetworkInterface':
      return [eniKey(node, eniID, 'AttachNetworkInterface')];
    case 'ModifyNetworkInterfaceAttribute':
      return [eniKey(node, eniID, action)];
    default:
      return [];
  }
}
