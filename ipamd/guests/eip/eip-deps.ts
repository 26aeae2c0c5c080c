import type { Cloud } from '../../../cloud/cloud.ts';
import type { Term } from '../../calls/term.ts';
import type { IpamdConfig } from '../../config/options.ts';
import type { EipClaimCache } from './eip-claim-cache.ts';
import type { EipPod } from './eip-view.ts';

/** Dependencies of the EIP controller; one for each term of leadership. */
export type EipDeps = Pick<
  Term,
  'kube' | 'clock' | 'log' | 'ids' | 'events' | 'leader' | 'breakers' | 'definitions'
> & {
  readonly config: Pick<IpamdConfig, 'claimExpiredDurationMs'>;
  readonly cloud: Pick<Cloud, 'eips' | 'tasks'>;
  /**
   * Returns a live Pod by its key, with the location of its address; undefined when it is deleted or finished. Requires
   * synced caches.
   */
  readonly podOf: (key: string) => EipPod | undefined;
  /** Returns the limit of EIPs of a node; undefined while unknown. */
  readonly limitOf: (nodeName: string) => number | undefined;
  readonly claimCache: EipClaimCache;
};

/** Breaker key of the quota of EIPs. */
export const EIP_QUOTA = 'eips';

/** Returns the breaker key of one claim's calls. */
export function claimBreaker(key: string): string {
  return `eip/${key}`;
}
