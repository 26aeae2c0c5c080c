import type { Cloud, IpUser } from '../../cloud/cloud.ts';
import type { NecEntry } from '../nec-cache.ts';
import type { AskHolder } from './taken-book.ts';

/** What is asked who has an address. */
export type AskHolderDeps = {
  readonly cloud: Pick<Cloud, 'subnets'>;
  readonly necs: { values(): Iterable<NecEntry> };
};

const TIMEOUT_MS = 10_000;

/** Makes what asks the cloud who has an address: in the VPC of the nodes. Its errors are the cloud's. */
export function createAskHolder({ cloud, necs }: AskHolderDeps): AskHolder {
  return async (ips, signal) => {
    const vpcId = [...necs.values()].map(({ decoded }) => decoded?.status?.vpcID).find((id) => id !== undefined);
    if (vpcId === undefined || ips.length === 0) return undefined;
    const context = { priority: 'gc', owner: 'claims', signal, timeoutMs: TIMEOUT_MS } as const;
    const users = await cloud.subnets.usersOf(vpcId, ips, context);
    return users.length === 0 ? undefined : users.map(wordsOf).join(', ');
  };
}

function wordsOf({ ip, resourceType, resourceId }: IpUser): string {
  return `${ip} is of ${resourceType} ${resourceId}`.trim();
}
