import { ENI_FAULTS } from './eni-faults.ts';
import type { NodeFault } from './node-fault.ts';
import { POD_FAULTS } from './pod-faults.ts';
import { ROUTING_FAULTS } from './routing-faults.ts';

/** All faults, by where they are. */
export const NODE_FAULTS: readonly NodeFault[] = [...ROUTING_FAULTS, ...POD_FAULTS, ...ENI_FAULTS];
