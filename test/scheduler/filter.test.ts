import test from 'ava';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { ClaimFacts } from '../../scheduler/index/facts.ts';
import { readClaim } from '../../scheduler/index/facts.ts';
import { SchedulerIndex } from '../../scheduler/index/scheduler-index.ts';
import { filter } from '../../scheduler/verbs/filter.ts';
import { RecentPods } from '../../scheduler/verbs/recent-pods.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { TTL_MS } from './index-scene.ts';
import { claimOf, podOf } from './scheduler-scene.ts';

/** Counts how often somebody looks for a claim, which is once for each look at all nodes. */
class CountingIndex extends SchedulerIndex {
  looks = 0;

  override claim(key: string): ClaimFacts | undefined {
    this.looks += 1;
    return super.claim(key);
  }
}

test('filter: looks at the nodes now and then while it waits, not at each change of a busy cluster', async (t) => {
  const clock = new VirtualClock();
  const index = new CountingIndex(TTL_MS);
  const changes = new ChangeSignal(clock);
  const deps = { index, clock, changes, recent: new RecentPods(), waitMs: 2_000 };
  const body = { Pod: podOf({ name: 'web-0', isStatic: true }), NodeNames: ['n1'] };
  const answer = filter(deps, body, new AbortController().signal);
  for (let ms = 0; ms < 1_000; ms++) {
    await clock.advance(1);
    changes.notify();
  }
  t.true(index.looks > 10 && index.looks <= 60, `${index.looks} looks`);
  index.setClaim('default/web-0', readClaim(claimOf({ name: 'web-0' })), { ageMs: 0, monotonicMs: 0 });
  changes.notify();
  await clock.advance(50);
  t.deepEqual(JSON.parse((await answer).text).NodeNames, []);
});
