import test from 'ava';
import { testCrashes } from './support/crash-at-calls.ts';

// TKE_ENI_CRASH_POINTS=all tries every call, which takes hours; TKE_ENI_CRASH_POINTS=600 as many as fit 600 seconds.
const WISH = process.env['TKE_ENI_CRASH_POINTS'] ?? '180';

testCrashes(test, { isAll: true, budgetMs: WISH === 'all' ? Number.POSITIVE_INFINITY : Number(WISH) * 1_000 });
