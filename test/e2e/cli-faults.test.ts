import test from 'ava';
import { testFaults } from './support/fault-trial.ts';
import { isShortFault, NODE_FAULTS } from './support/node-faults.ts';
import { PER_POD_FAULTS } from './support/per-pod-faults.ts';

// A few faults of each kind; the suite `long` tries all others, `cli-faults-*.long.test.ts`.

testFaults(test, NODE_FAULTS.filter(isShortFault));
testFaults(test, PER_POD_FAULTS.slice(0, 1), { ruleMode: 'per-pod', isDual: true });
