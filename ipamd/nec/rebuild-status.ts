import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { CloudSight, Ids } from './decision.ts';

/** Makes the status anew from what the cloud holds. Pure. */
export function rebuildStatus(
  _status: NodeEniConfigStatus,
  _spec: NodeEniConfigSpec,
  _sight: CloudSight,
  _ids: Ids,
): NodeEniConfigStatus {
  throw new Error('not built yet');
}
