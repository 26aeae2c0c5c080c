import test from 'ava';
import { testFaults } from './support/fault-trial.ts';
import { PER_POD_FAULTS } from './support/per-pod-faults.ts';

testFaults(test, PER_POD_FAULTS.slice(1), { ruleMode: 'per-pod', isDual: true });
