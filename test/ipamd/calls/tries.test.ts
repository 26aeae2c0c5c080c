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

test('an attachment without an outcome is given up, and its ENI goes once nobody wants it', async (t) => {
  const scene = await openNodeScene();
  scene.want(0);
  scene.lead();
  await scene.pass(60_000);
  scene.host.faults.add({ fault: { kind: 'error', code: 'InternalError' }, actions: ['AttachNetworkInterface'] });
  const ids = new Set<string>();
  const attachments = () =>
    (scene.nec()?.status?.intents ?? []).filter(({ action }) => action === 'AttachNetworkInterface');
  scene.want(4);
  const isDecidedAgain = () => {
    for (const { id } of attachments()) ids.add(id);
    return ids.size > 1;
  };
  t.true(await scene.until(isDecidedAgain, 1_800_000));
  scene.want(0);
  const isClean = () =>
    (scene.nec()?.status?.intents ?? []).length === 0 &&
    [...scene.host.model.state.enis.values()].every(({ isPrimary }) => isPrimary);
  t.true(await scene.until(isClean, 900_000));
  t.deepEqual(scene.violations, []);
});
