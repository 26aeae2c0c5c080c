import test from 'ava';
import { NODE_ENI_CONFIGS, NODES } from '../../../../kube/resource-types.ts';
import { CiliumScene } from './cilium-scene.ts';

const ALONE = ['--leader-elect=false'];

test('an offer that another client writes takes no address of the pool off its ENI', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.startPods('n1', 2);
  await scene.until(() => scene.isSettled('n1') && scene.poolIps('n1').length === 9, 'settled');
  const before = scene.assigned('n1');
  const offers = (scene.statusOf('n1').eniInfos ?? []).flatMap(({ addresses = [] }) =>
    addresses.map(({ ip, assignmentID }) => ({ ip, assignmentID })),
  );
  const { supplyEpoch = 0 } = scene.statusOf('n1');
  for (let round = 0; round < 6; round++) {
    const spec = { desiredRouteENIIP: 1, releasableIPs: offers, observedSupplyEpoch: supplyEpoch };
    await scene.run(scene.shell.kube.patch(NODE_ENI_CONFIGS, { name: 'n1' }, { kind: 'merge', body: { spec } }));
    await scene.pass(20_000);
    t.deepEqual(scene.assigned('n1'), before);
  }
  t.true(
    scene.events().some((one) => one.startsWith('CiliumDemandContested')),
    scene.events().join('\n'),
  );
  await scene.run(ipamd.close());
});

test('a NodeENIConfig that is made again is no reason to doubt the pool', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.startPods('n1', 2);
  await scene.until(() => scene.isSettled('n1'), 'settled');
  const pool = scene.poolIps('n1');
  const uid = scene.shell.nec('n1')?.metadata.uid;
  await scene.run(scene.shell.kube.delete(NODE_ENI_CONFIGS, { name: 'n1' }));
  await scene.until(() => {
    t.deepEqual(
      [...scene.ipam('n1').pool.values()].filter(({ owner }) => owner === 'no-eni'),
      [],
    );
    return scene.shell.nec('n1') !== undefined && scene.shell.nec('n1')?.metadata.uid !== uid && scene.isSettled('n1');
  }, 'made again');
  t.deepEqual(scene.poolIps('n1'), pool);
  t.deepEqual(
    scene.events().filter((one) => one.startsWith('CiliumPoolContested')),
    [],
  );
  await scene.run(ipamd.close());
});

test('a pool of a node that has the label no more holds up the growth of no other', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.until(() => scene.poolIps('n1').length === 7, 'a pool');
  await scene.join('n2', { hasAgent: false });
  await scene.until(() => scene.assigned('n2').length === 7, 'addresses of the other node');
  // As after a node lost its ENIs by force: its pool has addresses that are on another node by now.
  scene.isEdited = true;
  const pool = Object.fromEntries(scene.assigned('n2').map((ip) => [ip, {}]));
  const labels = { 'tke.cloud.tencent.com/cilium-ipam': null };
  await scene.run(scene.shell.kube.patch(NODES, { name: 'n1' }, { kind: 'merge', body: { metadata: { labels } } }));
  await scene.patchNode('n1', { spec: { ipam: { pool } } });
  scene.startAgent('n2');
  await scene.until(() => scene.agents.get('n2')?.isReady === true, 'Cilium starts on the other node');
  t.true(scene.assigned('n2').length > 7);
  t.deepEqual(
    scene.poolIps('n2').filter((ip) => ip in pool),
    [],
  );
  await scene.run(ipamd.close());
});
