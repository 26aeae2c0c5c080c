import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { recordOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';

/** Reads spec and status of a NodeENIConfig of the store: its schema has checked them. */
export function necFacts(object: KubeObject): {
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
} {
  return {
    spec: recordOf(object['spec']) as NodeEniConfigSpec,
    status: recordOf(object['status']) as NodeEniConfigStatus,
  };
}
