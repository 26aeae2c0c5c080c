import test from 'ava';
import { ATTRIBUTES, EipScene, ID_LIST, POLICY } from './eip-scene.ts';

const WISH = { [ATTRIBUTES]: '{"Bandwidth":"50","ISP":"BGP"}'.replace('"50"', '50') } as const;
const KEPT = { ...WISH, [POLICY]: 'Never' } as const;

test('runEips: a Pod gets an EIP of its own, is told its address, and the EIP goes with it', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  await scene.addPod('web-0', 'n1', undefined, WISH);
  t.true(await scene.until(() => scene.claim('web-0')?.status?.phase === 'Pending'));
  t.is(scene.eips().length, 0, 'none is made for a Pod without an address');
  await scene.giveIp('web-0', scene.ip('n1', 0));
  t.true(await scene.until(() => scene.isServed('web-0')), JSON.stringify(scene.claimObject('web-0')));
  const [eip] = scene.madeFor('web-0');
  t.like(eip, { bandwidthMbps: 50, isp: 'BGP' });
  t.deepEqual(eip?.tags, {
    'tke-clusterId': 'cls-eiptest1',
    'tke-created-eip': 'true',
    'tke-eip-claim': 'default/web-0',
  });
  await scene.deletePod('web-0');
  t.true(await scene.until(() => scene.claimObject('web-0') === undefined));
  t.deepEqual(scene.eips(), []);
  t.deepEqual(scene.violations, []);
});

test('runEips: the next Pod of the name gets the EIP back elsewhere when the policy is Never', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), KEPT);
  t.true(await scene.until(() => scene.isServed('web-0')));
  const before = scene.publicIpOf('web-0');
  await scene.deletePod('web-0');
  t.true(await scene.until(() => scene.claim('web-0')?.status?.phase === 'Retained'));
  t.is(scene.madeFor('web-0')[0]?.status, 'UNBIND');
  await scene.addPod('web-0', 'n2', scene.ip('n2', 3), KEPT);
  t.true(await scene.until(() => scene.isServed('web-0')));
  t.is(scene.publicIpOf('web-0'), before);
  t.deepEqual(scene.violations, []);
});

test('runEips: Pods get the EIPs of their list by number, and none that is another’s', async (t) => {
  const scene = await EipScene.open();
  const list = [await scene.lend(), await scene.lend()];
  const annotations = { [ID_LIST]: list.join(',') };
  scene.lead();
  await scene.addPod('db-1', 'n1', scene.ip('n1', 1), annotations);
  await scene.addPod('db-0', 'n1', scene.ip('n1', 0), annotations);
  await scene.addPod('db-2', 'n1', scene.ip('n1', 2), annotations);
  t.true(await scene.until(() => scene.isServed('db-0') && scene.isServed('db-1')));
  t.true(await scene.until(() => scene.claim('db-2')?.status?.phase === 'Failed'));
  t.is(scene.claim('db-0')?.status?.eipID, list[0]);
  t.is(scene.claim('db-1')?.status?.eipID, list[1]);
  t.regex(scene.claim('db-2')?.status?.message ?? '', /none for number 2/);
  for (const name of ['db-0', 'db-1', 'db-2']) await scene.deletePod(name);
  const names = ['db-0', 'db-1', 'db-2'];
  t.true(await scene.until(() => names.every((name) => scene.claimObject(name) === undefined)));
  t.deepEqual(
    scene.eips().map((eip) => [eip.eipId, eip.status]),
    list.map((eipId) => [eipId, 'UNBIND']),
  );
  t.deepEqual(scene.violations, []);
});

test('runEips: the next Pod gets the EIP of a claim that ended, before the watch tells of its end', async (t) => {
  const scene = await EipScene.open();
  const annotations = { [ID_LIST]: await scene.lend() };
  scene.lead();
  await scene.addPod('web', 'n1', scene.ip('n1', 0), annotations);
  t.true(await scene.until(() => scene.isServed('web')));
  const laterMs = 3_600_000;
  scene.server.api.faults.add({
    verbs: ['watch'],
    resources: ['eipclaims'],
    action: { kind: 'watch-delay', ms: laterMs },
  });
  scene.server.cutWatches('ipamd');
  await scene.clock.advance(10_000);
  await scene.deletePod('web');
  t.true(await scene.until(() => scene.claimObject('web') === undefined));
  await scene.addPod('next', 'n1', scene.ip('n1', 1), annotations);
  t.true(await scene.until(() => scene.isServed('next'), 20_000), JSON.stringify(scene.claim('next')?.status));
});

test('runEips: leaves the EIP of a Pod that lists lack bound to it', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  for (const [name, node] of [
    ['web-0', 'n1'],
    ['web-1', 'n2'],
  ] as const)
    await scene.addPod(name, node, scene.ip(node, 0), name === 'web-0' ? KEPT : WISH);
  t.true(await scene.until(() => scene.isServed('web-0') && scene.isServed('web-1')));
  scene.server.api.faults.add({ resources: ['pods'], userAgent: 'ipamd', action: { kind: 'empty-list' } });
  scene.server.cutWatches('ipamd');
  await scene.clock.advance(10 * 60_000);
  t.true(scene.isServed('web-0'));
  t.true(scene.isServed('web-1'));
});

test('runEips: releases no EIP whose claim lists lack', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), KEPT);
  t.true(await scene.until(() => scene.isServed('web-0')));
  await scene.deletePod('web-0');
  t.true(await scene.until(() => scene.claim('web-0')?.status?.phase === 'Retained'));
  scene.server.api.faults.add({ resources: ['eipclaims'], userAgent: 'ipamd', action: { kind: 'empty-list' } });
  scene.server.cutWatches('ipamd');
  await scene.clock.advance(20 * 60_000);
  t.is(scene.madeFor('web-0')[0]?.status, 'UNBIND');
});

test('runEips: releases no EIP with the tags of TKE alone, in ten audits', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), KEPT);
  t.true(await scene.until(() => scene.isServed('web-0')));
  const tags = { 'tke-clusterId': 'cls-eiptest1', 'tke-created-eip': 'true' };
  const foreign = [await scene.lend(tags), await scene.lend({ ...tags, 'tke-eip-claim': '' })];
  await scene.deletePod('web-0');
  t.true(await scene.until(() => scene.claim('web-0')?.status?.phase === 'Retained'));
  await scene.dropClaim('web-0');
  await scene.clock.advance(10 * 60_000);
  t.deepEqual(
    scene.eips().map(({ eipId }) => eipId),
    foreign,
    'that of the claim, which lost its finalizer, is released in the same audits',
  );
  t.false(scene.events.some((event) => foreign.some((eipId) => event.includes(eipId))));
});

test('runEips: a fault in the sweep ends it all, with that fault', async (t) => {
  const scene = await EipScene.open();
  const fault = new Error('a fault of ipamd');
  scene.onEvent = (reason) => {
    if (reason === 'OrphanEIPReleased') throw fault;
  };
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), KEPT);
  t.true(await scene.until(() => scene.isServed('web-0')));
  await scene.deletePod('web-0');
  t.true(await scene.until(() => scene.claim('web-0')?.status?.phase === 'Retained'));
  await scene.dropClaim('web-0');
  t.true(await scene.until(() => scene.fault !== undefined));
  t.is(scene.fault, fault);
  await scene.addPod('web-1', 'n1', scene.ip('n1', 1), WISH);
  t.false(await scene.until(() => scene.isServed('web-1'), 60_000), 'nothing of it goes on');
});
