import { setImmediate as yieldNow } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { longTest, shortTest } from '../../support/suite-part.ts';
import { type Exploration, explore, renderTrace } from '../explore.ts';
import { walk } from '../walk.ts';
import { ciliumModel, isForgotten, isReleased } from './cilium-model.ts';
import type { CiliumSetting, PlantedFault } from './cilium-world.ts';

const ONE: CiliumSetting = {
  ips: ['10.0.0.11'],
  wishes: [0],
  budget: { crashes: 1, faults: 0, pods: 1, wishes: 0 },
};
/** Far more than an exploration takes, and still an end. */
const MAX_TIMER_MS = 900_000;

async function exploreAndLog(t: ExecutionContext, setting: CiliumSetting): Promise<Exploration> {
  t.timeout(MAX_TIMER_MS);
  // Exploring blocks this process: AVA must hear of the longer timeout before.
  await yieldNow();
  const exploration = explore(ciliumModel(setting));
  const { states, transitions, violation } = exploration;
  t.log(`${states} states, ${transitions} transitions`);
  if (violation !== undefined) t.log(renderTrace(violation));
  return exploration;
}

const holds = test.macro(async (t, setting: CiliumSetting) => {
  const { violation, isComplete } = await exploreAndLog(t, setting);
  t.is(violation, undefined);
  t.true(isComplete);
});

const finds = test.macro(async (t, planted: PlantedFault, why: RegExp, more: Partial<CiliumSetting> = {}) => {
  const { violation } = await exploreAndLog(t, { ...ONE, ...more, planted });
  t.regex(violation?.why ?? 'no violation', why);
});

shortTest('cilium: an address is released or kept when either side is killed at any step', holds, ONE);
longTest('cilium: the same when writes are lost, labels change, and addresses are missing again', holds, {
  ...ONE,
  wishes: [0, 1],
  budget: { crashes: 1, faults: 1, pods: 1, wishes: 1 },
});
longTest('cilium: the same with two Pods, one of which comes back', holds, {
  ...ONE,
  wishes: [0, 1],
  budget: { crashes: 1, faults: 0, pods: 2, wishes: 1 },
});
longTest('cilium: the same with two addresses, one of which is wanted', holds, {
  ips: ['10.0.0.11', '10.0.0.12'],
  wishes: [1],
  budget: { crashes: 0, faults: 0, pods: 2, wishes: 0 },
});

const LEFT_POOL = /has left the pool, and shop\/a has it/;

shortTest('cilium check: finds that Pods of the API server are not asked', finds, 'no-veto', LEFT_POOL);
longTest('cilium check: finds that an answer is acted on at once', finds, 'no-settle', LEFT_POOL);
shortTest(
  'cilium check: finds that an address leaves the pool at its mark',
  finds,
  'leaves-pool-when-marked',
  LEFT_POOL,
);
shortTest(
  'cilium check: finds that an address is unassigned in the pool',
  finds,
  'offered-in-pool',
  /pools of two nodes/,
);
longTest(
  'cilium check: finds that a Pod that the agent forgot is not pinned',
  finds,
  'no-pin',
  /shop\/a and shop\/b have/,
  {
    budget: { crashes: 1, faults: 0, pods: 2, wishes: 0 },
  },
);
longTest('cilium check: finds that marks are withdrawn', finds, 'withdraws-marks', /has it|have 10/, {
  wishes: [0, 1],
  budget: { crashes: 1, faults: 0, pods: 2, wishes: 1 },
});
longTest('cilium check: finds that a refusal is left', finds, 'keeps-refused', /do-not-release stays/);
shortTest(
  'cilium check: finds that an agent that lost its answer is not asked again',
  finds,
  'no-report',
  /marked-for-release stays/,
  {
    budget: { crashes: 0, faults: 1, pods: 0, wishes: 0 },
  },
);

const DUE = ['ipamd: looks', 'time passes', 'time passes', 'ipamd: looks'];
const MARK = [...DUE, 'ipamd: writes entries 10.0.0.11 marked-for-release'];
const ANSWER = ['agent: sees', 'agent: writes'];

shortTest('cilium: an address that nothing uses goes all the way', (t) => {
  const state = walk(ciliumModel(ONE), [
    ...MARK,
    ...ANSWER,
    ...DUE,
    'ipamd: writes the pool',
    'ipamd: looks',
    'ipamd: writes offers 10.0.0.11',
    'ipamd: decides to unassign',
    'cloud: unassigns',
    'ipamd: hears',
    'ipamd: looks',
    'ipamd: writes entries 10.0.0.11 released',
    'agent: sees',
    'agent: writes',
  ]);
  t.true(isReleased(state));
});

shortTest(
  'cilium: an agent that starts with a mark in place gives up the address of a Pod, which then is pinned',
  (t) => {
    const model = ciliumModel(ONE);
    const forgotten = walk(model, [
      ...MARK,
      'agent: gives 10.0.0.11 to shop/a',
      'API server: shop/a has',
      'agent: dies',
      'agent: starts',
      'agent: has its pool',
      'ipamd: looks',
      'time passes',
      'time passes',
      'ipamd: looks',
      'ipamd: writes entries',
      ...ANSWER,
    ]);
    t.true(isForgotten(forgotten));
    t.is(model.faultOf(forgotten), undefined);
    const after = { ...model, initial: forgotten };
    const pinned = walk(after, ['ipamd: looks', 'ipamd: writes the pool']);
    t.deepEqual([...pinned.object.pool], [['10.0.0.11', 'shop/a']]);
  },
);
