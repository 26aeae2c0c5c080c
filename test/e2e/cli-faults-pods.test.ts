import test from 'ava';
import { testFaults } from './support/fault-trial.ts';
import { POD_FAULTS } from './support/pod-faults.ts';

testFaults(test, POD_FAULTS);
