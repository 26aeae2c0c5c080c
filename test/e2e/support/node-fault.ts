import type { FindingId } from '../../../inspection/catalogue/catalogue.ts';
import type { FaultScene } from './fault-scene.ts';

/**
 * One thing that goes wrong on a node. Injected while no agent runs: it would mend most of them within milliseconds. For
 * a node in compact mode with two ENIs.
 */
export type NodeFault = {
  readonly name: string;
  /** Does the harm. Gets the scene as it was read while all was well. */
  readonly inject: (scene: FaultScene) => Promise<unknown>;
  /**
   * Takes back what repair leaves alone, as a person would; repair can put back then what stood in its place. Absent where
   * nothing is left.
   */
  readonly undo?: (scene: FaultScene) => Promise<unknown>;
  /** True when the harm is done to something of ours. */
  readonly isOurs: boolean;
  /** True when a ping from the Pod to a host beyond the VPC gets no answer then. */
  readonly breaksPackets: boolean;
  /** Finding ids. `explain` sees what concerns the packets of the Pod; what breaks them it must see. */
  readonly expects: {
    readonly diff: FindingId;
    readonly explain?: FindingId;
    readonly doctor: FindingId;
    readonly repair: 'mends' | 'refuses';
  };
};
