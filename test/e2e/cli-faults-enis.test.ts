import test from 'ava';
import { ENI_FAULTS } from './support/eni-faults.ts';
import { testFaults } from './support/fault-trial.ts';

testFaults(test, ENI_FAULTS);
