import test from 'ava';
import { tryKillingTheLeader } from './support/leader-killed.ts';

tryKillingTheLeader(test, 'before-lost');
