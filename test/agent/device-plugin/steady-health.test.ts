import test from 'ava';
import { createSteadyHealth, UNHEALTHY_AFTER_MS } from '../../../agent/device-plugin/steady-health.ts';

test('createSteadyHealth: believes trouble that lasts, and recovery at once', (t) => {
  const steady = createSteadyHealth();
  t.is(steady(5, 0), 0);
  t.is(steady(0, 1_000), 0);
  t.is(steady(5, 2_000), 0, 'the time begins again');
  t.is(steady(4, UNHEALTHY_AFTER_MS + 1_000), 0);
  t.is(steady(4, UNHEALTHY_AFTER_MS + 2_000), 4);
  t.is(steady(6, UNHEALTHY_AFTER_MS + 3_000), 4);
  t.is(steady(1, UNHEALTHY_AFTER_MS + 4_000), 1);
  t.is(steady(2, UNHEALTHY_AFTER_MS + 4_001), 1);
});
