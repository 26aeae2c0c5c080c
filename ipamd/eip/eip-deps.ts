import type { Cloud } from '../../cloud/cloud.ts';
import { EIP_CLAIM_KIND } from '../../crd/eip-claim.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Ids } from '../nec/decision.ts';
import type { BreakerBook } from '../node/breaker-book.ts';
import type { NodeEvents, NodeTerm } from '../node/node-deps.ts';
import type { ClaimBook } from './claim-book.ts';
import type { EipPod } from './eip-view.ts';

/** The resource of EIPClaims. */
export const EIP_CLAIMS = resourceTypeOf(EIP_CLAIM_KIND);

/** What the EIPs of Pods are kept with; one for each term of leadership. */
export type EipDeps = {
  readonly cloud: Pick<Cloud, 'eips' | 'tasks'>;
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ids: Ids;
  readonly events: NodeEvents;
  readonly leader: {
    readonly epoch: number;
    readonly clusterId: string;
    readonly requestTimeoutSeconds: number;
    readonly term: NodeTerm;
  };
  /** Of the process. */
  readonly breakers: BreakerBook;
  /** A living Pod by its key, with where its address is; undefined when it is gone or over. Caches are synced. */
  readonly podOf: (key: string) => EipPod | undefined;
  /** Most EIPs of a node; undefined while nobody knows. */
  readonly limitOf: (nodeName: string) => number | undefined;
  readonly book: ClaimBook;
  /** How long a kept EIP waits where nothing else is said, milliseconds; 0: for ever. */
  readonly claimExpiredMs: number;
};

/** The breaker of the quota of EIPs. */
export const EIP_QUOTA = 'eips';

/** The breaker of one claim's calls. Pure. */
export function claimBreaker(key: string): string {
  return `eip/${key}`;
}
