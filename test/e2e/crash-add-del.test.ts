import test from 'ava';
import { testCrashes } from './support/crash-at-calls.ts';

testCrashes(test, { isAll: false, budgetMs: 6_000 });
