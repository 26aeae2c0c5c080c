import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { CloudSight } from './decision.ts';

/** One difference between what the object says and what the cloud holds. */
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

/** Names each difference between object and cloud that no call under way explains. Pure. */
export function findDrift(_status: NodeEniConfigStatus, _sight: CloudSight): readonly Drift[] {
  throw new Error('not built yet');
}
