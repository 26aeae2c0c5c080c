import test from 'ava';
import { testFaults } from './support/fault-trial.ts';
import { isShortFault } from './support/node-faults.ts';
import { ROUTING_FAULTS } from './support/routing-faults.ts';

testFaults(
  test,
  ROUTING_FAULTS.filter((fault) => !isShortFault(fault)),
);
