import test from 'ava';
import { testFaults } from './support/fault-trial.ts';
import { ROUTING_FAULTS } from './support/routing-faults.ts';

testFaults(test, ROUTING_FAULTS);
