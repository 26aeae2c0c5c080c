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

test('reconcileNode: sets security groups in their order, takes them away for an empty list, and gives back what it took', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  const groups = (): readonly string[] =>
    [...scene.host.model.state.enis.values()].find((eni) => !eni.isPrimary)?.securityGroupIds ?? [];
  const atFirst = groups();
  t.true(atFirst.length > 0);
  const [ab, ba] = [
    ['sg-a', 'sg-b'],
    ['sg-b', 'sg-a'],
  ];
  const wishes: readonly (readonly [readonly string[] | undefined, readonly string[]])[] = [
    [undefined, atFirst],
    [[], []],
    [undefined, atFirst],
    [ba, ba],
    [ab, ab],
    [undefined, ab],
    [[], []],
    [undefined, ab],
    [[], []],
    [['sg-a'], ['sg-a']],
    [undefined, ['sg-a']],
  ];
  for (const [wanted, expected] of wishes) {
    scene.facts.parts = wanted === undefined ? {} : { securityGroups: wanted };
    scene.want(scene.inUse.size + 5);
    await scene.edit((nec) => ({ ...nec, metadata: { ...nec.metadata, annotations: { look: String(wanted) } } }));
    await scene.pass(30_000);
    t.deepEqual(groups(), expected);
    const [eni] = scene.nec()?.status?.eniInfos ?? [];
    t.deepEqual(eni?.securityGroups, expected);
    t.is(eni?.clearedSecurityGroups === undefined, expected.length > 0);
  }
  t.deepEqual(auditNode(scene), []);
});
