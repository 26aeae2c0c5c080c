import test from 'ava';
import { auditNode, openNodeScene, supplyOf } from '../support/node-scene.ts';

test('reconcileNode: says that supply is short, and makes other calls, while a call takes long', async (t) => {
  const scene = await openNodeScene();
  scene.lead();
  scene.want(12);
  t.true(await scene.until(() => supplyOf(scene) === 12, 60_000));
  const readyOf = () => scene.nec()?.status?.conditions?.find(({ type }) => type === 'Ready');
  t.like(readyOf(), { status: 'True', reason: 'SupplyMet' });
  const fault = { kind: 'latency' as const, ms: 15_000 };
  scene.host.faults.add({ fault, actions: ['UnassignPrivateIpAddresses'], times: 1 });
  scene.want(11);
  t.true(await scene.until(() => (scene.nec()?.status?.intents ?? []).length === 1, 60_000));
  scene.want(20);
  await scene.pass(2_000);
  t.like(readyOf(), { status: 'False', reason: 'CallUnderWay' }, 'the demand is above the supply');
  t.true(await scene.until(() => supplyOf(scene) === 20, 60_000));
  t.true(await scene.until(() => (scene.nec()?.status?.intents ?? []).length === 0, 60_000));
  t.like(readyOf(), { status: 'True', reason: 'SupplyMet' });
  t.deepEqual(auditNode(scene), []);
});

test('reconcileNode: a refusal stays the reason while the call is tried again', async (t) => {
  const scene = await openNodeScene();
  const fault = { kind: 'error' as const, code: 'InvalidParameterValue.Malformed' };
  scene.host.faults.add({ fault, actions: ['CreateNetworkInterface'], times: 2 });
  const reasons: string[] = [];
  scene.want(5);
  scene.lead();
  for (let step = 0; step < 20_000 && supplyOf(scene) < 5; step++) {
    await scene.pass(100);
    const { reason = '' } = scene.nec()?.status?.conditions?.find(({ type }) => type === 'Ready') ?? {};
    if (reasons.at(-1) !== reason) reasons.push(reason);
  }
  t.is(supplyOf(scene), 5);
  await scene.pass(1_000);
  t.is(scene.host.counts()['CreateNetworkInterface'], 3);
  t.deepEqual(reasons.slice(0, 3), ['SupplyMet', 'CloudRefused', 'CallUnderWay']);
});

test('reconcileNode: follows a task once, however long it takes', async (t) => {
  const scene = await openNodeScene();
  scene.host.faults.add({ fault: { kind: 'slow-task', ms: 600_000 }, actions: ['AttachNetworkInterface'], times: 1 });
  scene.want(5);
  scene.lead();
  t.true(
    await scene.until(() => scene.nec()?.status?.intents?.some(({ phase }) => phase === 'Accepted') === true, 120_000),
  );
  const asks = (): number => scene.host.counts()['DescribeVpcTaskResult'] ?? 0;
  // Past the first record of the task (15 s) and the end of its first follower (60 s), which asks twice a minute.
  await scene.pass(90_000);
  const before = asks();
  await scene.pass(240_000);
  t.true(asks() > before && asks() - before <= 10, `${asks() - before} questions in four minutes`);
  const isOver = (): boolean => (scene.nec()?.status?.intents ?? []).length === 0;
  t.true(await scene.until(() => supplyOf(scene) === 5 && isOver()));
  t.deepEqual(auditNode(scene), []);
});
