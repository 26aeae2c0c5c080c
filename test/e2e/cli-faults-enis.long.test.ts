import test from 'ava';
import { ENI_FAULTS } from './support/eni-faults.ts';
import { testFaults } from './support/fault-trial.ts';
import { isShortFault } from './support/node-faults.ts';

testFaults(
  test,
  ENI_FAULTS.filter((fault) => !isShortFault(fault)),
);
