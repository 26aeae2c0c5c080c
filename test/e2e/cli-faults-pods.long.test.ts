import test from 'ava';
import { testFaults } from './support/fault-trial.ts';
import { isShortFault } from './support/node-faults.ts';
import { POD_FAULTS } from './support/pod-faults.ts';

testFaults(
  test,
  POD_FAULTS.filter((fault) => !isShortFault(fault)),
);
