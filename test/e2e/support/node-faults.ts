import { ENI_FAULTS } from './eni-faults.ts';
import type { NodeFault } from './node-fault.ts';
import { POD_FAULTS } from './pod-faults.ts';
import { ROUTING_FAULTS } from './routing-faults.ts';

/** All faults, by where they are. */
export const NODE_FAULTS: readonly NodeFault[] = [...ROUTING_FAULTS, ...POD_FAULTS, ...ENI_FAULTS];

/** One of each place and each outcome: what `make test` tries. All others are tried in the suite `long`. */
const SHORT: readonly string[] = [
  'missing rule: the mark of the ENI',
  'foreign rule above ours',
  'nft flush ruleset',
  'wrong neighbour MAC in the Pod',
  'ENI down',
];

/** Reports whether `make test` tries a fault end to end. */
export const isShortFault = ({ name }: NodeFault): boolean => SHORT.includes(name);
