import test from 'ava';
import { longTest, shortTest } from '../support/suite-part.ts';
import { exploreAndReport } from './explore-and-report.ts';
import type { PlantedFault, Setting } from './world.ts';

const SETTING: Setting = {
  ips: ['10.0.0.11', '10.0.0.12', '10.0.0.13'],
  pods: 2,
  warm: { min: 0, max: 0 },
  budget: { crashes: 1, faults: 1, restores: 0, tenants: 0, pods: 2 },
};
/** A planted fault is found in a fraction of this, or the check is blind to it. */
const MOST_STATES = 500_000;

/** A Pod has an address that the cloud does not route to it. */
const LOST = /which is not attached|does not route|another node has/;

const finds = test.macro(async (t, planted: PlantedFault, why: RegExp, more: Partial<Setting> = {}) => {
  const { violation } = await exploreAndReport(t, { ...SETTING, ...more, planted }, MOST_STATES);
  t.regex(violation?.why ?? 'no violation', why);
});

shortTest(
  'protocol check: finds that calls are made without an intent',
  finds,
  'no-intent',
  /neither object nor intent/,
);
shortTest(
  'protocol check: finds that writes are not guarded by the resourceVersion',
  finds,
  'no-guard',
  /neither object nor intent/,
);
shortTest('protocol check: finds that a Pod loses its address when writes are not guarded', finds, 'no-guard', LOST, {
  ips: SETTING.ips.slice(0, 1),
  pods: 1,
  budget: { ...SETTING.budget, crashes: 0, faults: 0 },
  isUseAllThatCounts: true,
});
longTest(
  'protocol check: finds that an old supply is believed, as its epoch is not looked at',
  finds,
  'no-epoch',
  LOST,
  {
    ips: SETTING.ips.slice(0, 1),
    pods: 1,
    restoreFindsAgentInformed: true,
    budget: { ...SETTING.budget, faults: 0, restores: 1 },
    isUseAllThatCounts: true,
  },
);
shortTest('protocol check: finds that there is no cooldown', finds, 'no-cooldown', /before its cooldown was over/);
shortTest('protocol check: finds that withdrawn addresses are given to Pods', finds, 'withdrawn-not-honoured', LOST);
