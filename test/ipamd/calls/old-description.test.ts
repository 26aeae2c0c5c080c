import test from 'ava';
import { auditNode, openNodeScene, supplyOf } from '../support/node-scene.ts';

const STALE_MS = 10_000;

test('an assignment whose task fails does not bring addresses that a description from before their removal shows', async (t) => {
  const scene = await openNodeScene();
  scene.want(9);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 9));
  await scene.pass(2 * STALE_MS);
  scene.want(2);
  t.true(await scene.until(() => supplyOf(scene) === 2 && (scene.nec()?.status?.intents ?? []).length === 0));
  const { faults } = scene.host;
  faults.add({ fault: { kind: 'task', fate: 'fail' }, actions: ['AssignPrivateIpAddresses'], times: 1 });
  const untilMs = scene.clock.monotonicMs() + STALE_MS;
  faults.add({ fault: { kind: 'stale', ms: STALE_MS }, actions: ['DescribeNetworkInterfaces'], untilMs });
  scene.want(6);
  t.true(await scene.until(() => supplyOf(scene) === 6));
  t.true(await scene.until(() => auditNode(scene).length === 0, 120_000), auditNode(scene).join('\n'));
});

test('an ENI that a description from before its creation lacks is not taken for gone', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  scene.lead();
  const enis = () => [...scene.host.model.state.enis.values()].filter((eni) => !eni.isPrimary);
  t.true(await scene.until(() => enis().some((eni) => eni.attachment !== undefined && eni.state === 'AVAILABLE')));
  // The description that ends the wait for the attachment is a new one; the next one is old.
  scene.host.faults.add({ fault: { kind: 'stale', ms: STALE_MS }, actions: ['DescribeNetworkInterfaces'], times: 1 });
  t.true(await scene.until(() => supplyOf(scene) === 5, 20_000));
  const changes = scene.host.seen.map(({ action }) => action).filter((action) => !action.startsWith('Describe'));
  t.deepEqual(
    changes.filter((action) => action !== 'AssignPrivateIpAddresses'),
    ['CreateNetworkInterface', 'AttachNetworkInterface'],
  );
});
