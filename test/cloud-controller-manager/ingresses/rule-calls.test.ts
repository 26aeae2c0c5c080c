import test from 'ava';
import { partOf } from '../../support/suite-part.ts';
import { measureRules } from './measure-rules.ts';

for (const ingresses of partOf([4, 20], (count) => count === 4)) {
  test(`${ingresses} Ingresses of 50 rules on one load balancer: within its quotas, the fewest calls, none after a restart`, async (t) => {
    const report = await measureRules(ingresses, 50);
    t.is(report.writes, report.fewestWrites, JSON.stringify(report.calls));
    t.is(report.restartWrites, 0);
    // Another path: its rule, its target, and the end of the former rule.
    t.is(report.changeWrites, 3);
    t.true(report.mostRules <= 50 && report.mostListeners <= 50, `${report.mostRules}, ${report.mostListeners}`);
  });
}
