import test from 'ava';
import { NODES } from '../../../../kube/resource-types.ts';
import { CiliumScene } from './cilium-scene.ts';

const ALONE = ['--leader-elect=false'];

test('a node of Cilium: its pool is what its NodeENIConfig has, and grows and shrinks with its Pods', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.until(() => scene.agents.get('n1')?.isReady === true, 'Cilium has its first addresses');
  await scene.until(() => scene.poolIps('n1').length === 7, 'two and the warm minimum');
  const enis = new Set(scene.statusOf('n1').eniInfos?.map(({ eniID }) => eniID));
  for (const { resource, owner } of scene.ipam('n1').pool.values()) {
    t.true(enis.has(resource ?? ''));
    t.is(owner, undefined);
  }
  await scene.startPods('n1', 12);
  await scene.until(() => scene.poolIps('n1').length === 19, 'twelve Pods, router, health and five');
  t.deepEqual(scene.poolIps('n1'), scene.assigned('n1'));
  await scene.endPods('n1', 12);
  await scene.until(() => scene.assigned('n1').length === 7, 'given back');
  await scene.until(() => scene.ipam('n1').releases.size === 0, 'settled');
  t.deepEqual(scene.poolIps('n1'), scene.assigned('n1'));
  t.is(scene.ipam('n1').operatorError, '');
  const text = await ipamd.metrics.registry.metrics();
  t.regex(text, /^tke_eni_ipamd_cilium_addresses\{state="pool"\} 7$/m);
  t.regex(text, /^tke_eni_ipamd_cilium_addresses\{state="free"\} 5$/m);
  await scene.run(ipamd.close());
});

test('pre-allocate and min-allocate are the demand', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.until(() => scene.agents.get('n1')?.isReady === true, 'ready');
  await scene.patchNode('n1', { spec: { ipam: { 'pre-allocate': 8 } } });
  await scene.until(() => scene.poolIps('n1').length === 10, 'eight free ones');
  await scene.patchNode('n1', { spec: { ipam: { 'min-allocate': 15 } } });
  await scene.until(() => scene.poolIps('n1').length === 15, 'fifteen in all');
  t.deepEqual(scene.poolIps('n1'), scene.assigned('n1'));
  await scene.run(ipamd.close());
});

test('a CiliumNode of a Node without the label is never written, nor any with --cilium-nodes=off', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: [...ALONE, '--cilium-nodes=off'] });
  await scene.join('n1');
  await scene.join('n2', { isLabelled: false });
  await scene.until(() => scene.assigned('n1').length > 0 && scene.assigned('n2').length > 0, 'both have addresses');
  await scene.pass(60_000);
  t.deepEqual([scene.node('n1')?.['spec'], scene.node('n2')?.['spec']], [undefined, undefined]);
  await scene.run(ipamd.close());
  const second = await scene.shell.start({ flags: ALONE });
  await scene.until(() => scene.poolIps('n1').length === 7, 'the labelled one is served');
  await scene.pass(60_000);
  t.is(scene.node('n2')?.['spec'], undefined);
  t.is(scene.node('n2')?.['status'], undefined);
  await scene.run(second.close());
});

test('the informer is opened only where a Node has the label and the cluster has CiliumNodes', async (t) => {
  const scene = await CiliumScene.open({ isDefined: false });
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1', { isLabelled: false, hasAgent: false });
  await scene.until(() => scene.assigned('n1').length > 0, 'addresses');
  t.notRegex(await ipamd.metrics.registry.metrics(), /resource="ciliumNodes"/);
  await scene.join('n2', { hasAgent: false });
  await scene.until(() => scene.events().some((one) => one.startsWith('CiliumNodeMissing')), 'it is reported');
  t.true(scene.assigned('n2').length === 7);
  await scene.define();
  scene.startAgent('n2');
  await scene.until(() => scene.poolIps('n2').length === 7, 'within ten minutes it is found');
  t.regex(await ipamd.metrics.registry.metrics(), /informer_synced\{resource="ciliumNodes"\} 1$/m);
  await scene.run(ipamd.close());
});

test('with three leaders, each killed in turn, the pool follows, and no address in use is lost', async (t) => {
  const scene = await CiliumScene.open();
  const names = ['first', 'second', 'third'];
  const replicas = await Promise.all(names.map((name) => scene.shell.start({ name })));
  await scene.join('n1');
  await scene.join('n2');
  for (const round of [0, 1]) {
    await scene.startPods('n1', 6);
    await scene.startPods('n2', 6);
    const leader = replicas.findIndex(({ isLeading }) => isLeading);
    const cut = scene.shell.server.partition(names[leader] ?? '');
    await scene.endPods('n1', 6);
    await scene.until(() => replicas.some(({ isLeading }, index) => isLeading && index !== leader), 'another leads');
    cut.heal();
    await scene.endPods('n2', 6);
    t.log(`round ${round}: ${names[leader]}`);
  }
  // A leader marks only what it has seen unused, of an agent that it has seen to write.
  await scene.startPods('n1', 1);
  await scene.startPods('n2', 1);
  await scene.until(() => scene.assigned('n1').length === 8 && scene.assigned('n2').length === 8, 'given back');
  await scene.until(() => scene.isSettled('n1') && scene.isSettled('n2'), 'settled');
  t.deepEqual(scene.poolIps('n1'), scene.assigned('n1'));
  t.deepEqual(scene.poolIps('n2'), scene.assigned('n2'));
  await scene.run(Promise.all(replicas.map((ipamd) => ipamd.close())));
});

test('Cilium dies between mark and answer, and answers for an address in use: it is vetoed', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.startPods('n1', 10);
  await scene.endPods('n1', 6);
  await scene.until(() => scene.ipam('n1').releases.size > 0, 'marked');
  scene.killAgent('n1');
  // What a person, or an older release, might have marked: an address of a Pod.
  const ip = scene.agents.get('n1')?.sandboxes.get('default/n1-9') ?? '';
  await scene.patchNode('n1', { status: { ipam: { 'release-ips': { [ip]: 'marked-for-release' } } } }, 'status');
  scene.startAgent('n1', 60_000);
  await scene.pass(300_000);
  t.true(scene.poolIps('n1').includes(ip));
  t.true(scene.assigned('n1').includes(ip));
  await scene.until(() => scene.isSettled('n1'), 'settled');
  t.deepEqual(scene.poolIps('n1'), scene.assigned('n1'));
  await scene.run(ipamd.close());
});

test('an agent that does not answer keeps what it has, and is reported', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.startPods('n1', 10);
  await scene.endPods('n1', 10);
  await scene.until(() => scene.ipam('n1').used.size === 2, 'it has written');
  scene.killAgent('n1');
  const before = scene.poolIps('n1');
  await scene.until(() => scene.events().some((one) => one.startsWith('CiliumReleaseUnanswered')), 'it is reported');
  await scene.pass(900_000);
  t.deepEqual(scene.poolIps('n1'), before);
  t.deepEqual(scene.assigned('n1'), before);
  scene.startAgent('n1');
  await scene.startPods('n1', 1);
  await scene.until(() => scene.assigned('n1').length === 8, 'given back once it runs');
  await scene.run(ipamd.close());
});

test('a drained node: addresses in use stay, all others are given up first and then taken', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.startPods('n1', 3);
  await scene.until(() => scene.assigned('n1').length === 10, 'addresses');
  const annotations = { 'tke.cloud.tencent.com/disable-node-eni': 'true' };
  await scene.run(
    scene.shell.kube.patch(NODES, { name: 'n1' }, { kind: 'merge', body: { metadata: { annotations } } }),
  );
  await scene.until(() => scene.assigned('n1').length === 5, 'three Pods, router and health stay');
  t.is(scene.statusOf('n1').eniInfos?.length, 1);
  await scene.run(ipamd.close());
});
