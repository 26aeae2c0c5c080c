import test from 'ava';
import { auditNode, openNodeScene, supplyOf } from '../support/node-scene.ts';

test('reconcileNode: brings a node that joins what it wants, and gives back what it no longer wants', async (t) => {
  const scene = await openNodeScene();
  scene.want(12);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 12, 60_000));
  await scene.pass(10_000);
  t.deepEqual(auditNode(scene), []);
  t.is(scene.nec()?.status?.routeENIIPs, 12);
  t.is(scene.nec()?.status?.routeENIs, 2);
  scene.want(7);
  t.true(await scene.until(() => supplyOf(scene) === 7 && scene.nec()?.status?.routeENIs === 1, 60_000));
  await scene.pass(30_000);
  t.deepEqual(auditNode(scene), []);
  scene.want(27);
  t.true(await scene.until(() => supplyOf(scene) === 27, 60_000));
  await scene.pass(30_000);
  t.deepEqual(auditNode(scene), []);
  t.is(scene.nec()?.status?.conditions?.find((one) => one.type === 'Ready')?.status, 'True');
});
