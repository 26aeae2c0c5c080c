import test from 'ava';
import { testBridgeCrashes } from './support/crash-at-calls.ts';

// As crash-every-call.long.test.ts: `all` tries every call, a number as many as fit so many seconds.
const WISH = process.env['TKE_ENI_CRASH_POINTS'] ?? '120';

testBridgeCrashes(test, { isAll: true, budgetMs: WISH === 'all' ? Number.POSITIVE_INFINITY : Number(WISH) * 1_000 });
