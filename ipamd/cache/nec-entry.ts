import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { Fault } from '../../runtime/decode.ts';

/** A NodeENIConfig as the reconciler reads it: the object, what was decoded from it, and its faults. */
export type NecEntry = {
  /** Written back with ipamd's fields changed. */
  readonly object: KubeObject;
  /** Undefined when nothing can be read from its status. */
  readonly decoded: NodeEniConfig | undefined;
  /** Empty for an object that passes every check. */
  readonly faults: readonly Fault[];
};
