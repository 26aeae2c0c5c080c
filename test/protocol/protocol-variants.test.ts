import test from 'ava';
import { longTest, shortTest } from '../support/suite-part.ts';
import { exploreAndReport } from './explore-and-report.ts';
import type { Setting } from './world.ts';

const IPS = ['10.0.0.11', '10.0.0.12', '10.0.0.13'];
const NOTHING = { crashes: 0, faults: 0, restores: 0, tenants: 0, pods: 2 };
const NO_SPARE: Setting = { ips: IPS, pods: 2, warm: { min: 0, max: 0 }, budget: NOTHING };

const holds = test.macro(async (t, setting: Setting) => {
  const { violation, isComplete } = await exploreAndReport(t, setting);
  t.true(isComplete);
  t.is(violation, undefined);
});

shortTest('protocol: holds when nothing goes wrong', holds, NO_SPARE);
longTest(
  'protocol: holds when each address that is spare goes back, whatever two crashes and a message fault do',
  holds,
  {
    ...NO_SPARE,
    budget: { ...NOTHING, crashes: 2, faults: 1 },
  },
);
longTest('protocol: holds when another node takes an address that was given back', holds, {
  ...NO_SPARE,
  budget: { ...NOTHING, crashes: 1, faults: 1, tenants: 1 },
});
longTest('protocol: holds when a third Pod follows two', holds, { ...NO_SPARE, budget: { ...NOTHING, pods: 3 } });
const RESTORE: Setting = { ...NO_SPARE, pods: 1, restoreFindsAgentInformed: true };
longTest('protocol: holds when etcd is restored, and something else goes wrong beside it', holds, {
  ...RESTORE,
  ips: IPS.slice(0, 2),
  budget: { ...NOTHING, pods: 1, crashes: 2, faults: 1, restores: 1 },
});
longTest('protocol: holds when etcd is restored while the only address goes from Pod to Pod', holds, {
  ...RESTORE,
  ips: IPS.slice(0, 1),
  budget: { ...NOTHING, crashes: 1, restores: 1 },
});
