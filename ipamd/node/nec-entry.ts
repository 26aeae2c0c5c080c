import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { Fault } from '../../runtime/decode.ts';

/** A NodeENIConfig as a node's reconciler takes it: the object, what was read in it, and what is wrong with it. */
export type NecEntry = {
  /** Written back with our fields changed. */
  readonly object: KubeObject;
  /** Undefined when nothing can be read from its status. */
  readonly decoded: NodeEniConfig | undefined;
  /** Empty for an object that passes every check. */
  readonly faults: readonly Fault[];
};
