import type { Cloud } from '../../cloud/cloud.ts';
import { EIP_CLAIM_KIND } from '../../crd/eip-claim.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Ids } from '../decide/decision.ts';
import type { CircuitBreakers } from '../supply/circuit-breakers.ts';
import type { NodeEvents, NodeTerm } from '../supply/term.ts';
import type { EipClaimCache } from './eip-claim-cache.ts';
import type { EipPod } from './eip-view.ts';

/** The resource type of EIPClaims. */
export const EIP_CLAIMS = resourceTypeOf(EIP_CLAIM_KIND);

/** Dependencies of the EIP controller; one for each term of leadership. */
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
  /** Of the process: used by all its terms. */
  readonly breakers: CircuitBreakers;
  /**
   * Returns a live Pod by its key, with the location of its address; undefined when it is deleted or finished. Requires
   * synced caches.
   */
  readonly podOf: (key: string) => EipPod | undefined;
  /** Returns the limit of EIPs of a node; undefined while unknown. */
  readonly limitOf: (nodeName: string) => number | undefined;
  readonly claimCache: EipClaimCache;
  /** Tells whether a claim was deleted by itself, and not with the definition of its kind. Default: always. */
  readonly isOwnDeletion?: (uid: string, signal: AbortSignal) => Promise<boolean>;
  /** How long an EIP is retained if its claim contains no time, milliseconds; 0: without limit. */
  readonly claimExpiredMs: number;
};

/** Breaker key of the quota of EIPs. */
export const EIP_QUOTA = 'eips';

/** Returns the breaker key of one claim's calls. */
export function claimBreaker(key: string): string {
  return `eip/${key}`;
}
