import test from 'ava';
import { MAX_DESCRIPTION_AGE_MS } from '../../../ipamd/calls/recent-changes.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { recordOf } from '../../../runtime/json.ts';
import { shellScene } from './shell-scene.ts';

/** Lease and timeout together are less than a description may be old. */
const SHORT = {
  flags: ['--cloud-timeout=5s', '--leader-elect-lease=6s', '--leader-elect-renew=3s', '--leader-elect-retry=1s'],
};

test('rebuildRestored: waits a minute of the term, for the last call of a leader that left orderly', async (t) => {
  const scene = await shellScene();
  const epochOf = (): number => Number(recordOf(scene.nec('n1')?.['status'])['supplyEpoch'] ?? 0);
  const first = await scene.start({ ...SHORT, name: 'first' });
  await scene.until(() => first.isLeading);
  await scene.join('n1');
  await scene.until(() => epochOf() > 0);
  await scene.clock.advance(MAX_DESCRIPTION_AGE_MS);
  await scene.clock.run(first.close());
  const restored = epochOf();
  const body = { spec: { observedSupplyEpoch: restored + 5 } };
  await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name: 'n1' }, { kind: 'merge', body }));
  const second = await scene.start({ ...SHORT, name: 'second' });
  await scene.until(() => second.isLeading);
  await scene.clock.advance(MAX_DESCRIPTION_AGE_MS - 5_000);
  t.is(epochOf(), restored);
  await scene.until(() => epochOf() > restored + 5);
  t.pass();
});
