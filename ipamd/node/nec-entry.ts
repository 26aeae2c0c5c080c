import { type NodeEniConfig, nodeEniConfig } from '../../crd/node-eni-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { type Fault, Faults } from '../../runtime/decode.ts';

/** A NodeENIConfig as it is cached: the object, what we read in it, and what is wrong with it. */
export type NecEntry = {
  readonly object: KubeObject;
  /** Undefined when a field has a shape that nothing can be read from. */
  readonly decoded: NodeEniConfig | undefined;
  /** Empty for an object that passes every check. */
  readonly faults: readonly Fault[];
};

/** Reads a NodeENIConfig, however wrong it is: the faults are data, so that a wrong object holds up nobody else. Pure. */
export function decodeNec(object: KubeObject): NecEntry {
  const faults = new Faults();
  const decoded = nodeEniConfig(object, '', faults);
  return { object, decoded, faults: faults.list };
}
