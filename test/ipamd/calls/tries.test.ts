import test from 'ava';
import { openNodeScene, supplyOf } from '../support/node-scene.ts';

test('a call without a token that stays without an outcome is sent six times, and counted so', async (t) => {
  const scene = await openNodeScene();
  scene.want(6);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 6));
  await scene.pass(60_000);
  const action = 'UnassignPrivateIpAddresses';
  scene.host.faults.add({ fault: { kind: 'error', code: 'InternalError' }, actions: [action] });
  const sent = () => scene.host.seen.filter((one) => one.action === action).length;
  const intentNow = () => scene.nec()?.status?.intents?.find((one) => one.action === action);
  scene.want(2);
  t.true(await scene.until(() => intentNow() !== undefined));
  const first = intentNow()?.id;
  const counted = new Map<number, number>();
  const isOver = () => {
    const { id, phase, tries = 0 } = intentNow() ?? {};
    if (id === first && phase === 'Unclear') counted.set(sent(), tries);
    return id !== first;
  };
  t.true(await scene.until(isOver));
  t.deepEqual(
    [...counted],
    [1, 2, 3, 4, 5, 6].map((count) => [count, count]),
  );
  t.deepEqual(scene.violations, []);
});
