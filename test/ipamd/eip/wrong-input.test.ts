import test from 'ava';
import { EIP_CLAIMS, PODS } from '../../../kube/resource-types.ts';
import { ATTRIBUTES, EipScene, ID_LIST, POLICY } from './eip-scene.ts';

const WISH = { [ATTRIBUTES]: '' } as const;
const KEPT = { ...WISH, [POLICY]: 'Never' } as const;
const HOUR_MS = 3_600_000;

/** Goes on for so long, whatever comes. */
const pass = (scene: EipScene, ms: number) => scene.until(() => false, ms);

test('runEips: says what is malformed, makes no EIP for it, and serves the others', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  const wrong = {
    json: { [ATTRIBUTES]: '{"Bandwidth":' },
    speed: { [ATTRIBUTES]: '{"Bandwidth":0}' },
    list: { [ID_LIST]: 'eip-1;eip-2' },
    policy: { ...WISH, [POLICY]: 'Sometimes' },
  };
  for (const [index, [name, annotations]] of Object.entries(wrong).entries()) {
    await scene.addPod(name, 'n1', scene.ip('n1', index), annotations);
  }
  await scene.addPod('right', 'n1', scene.ip('n1', 8), WISH);
  t.true(await scene.until(() => scene.isServed('right')));
  await pass(scene, 60_000);
  for (const name of Object.keys(wrong)) t.is(scene.claimObject(name), undefined, name);
  t.is(scene.eips().length, 1);
  const told = scene.events.filter((event) => event.startsWith('EIPInvalid'));
  t.is(told.length, Object.keys(wrong).length, told.join('\n'));
  t.regex(told.join('\n'), /InternetMaxBandwidthOut: expected a whole number of Mbps from 1 to 10000, got 0/);
});

test('runEips: a wrong annotation that was taken off is told again when it is back, and to the next Pod of the name', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  const wrong = { [ATTRIBUTES]: '{"Bandwidth":0}' };
  const annotate = (value: string | null) => {
    const body = { metadata: { annotations: { [ATTRIBUTES]: value } } };
    const ref = { namespace: 'default', name: 'web-0' };
    return scene.clock.run(scene.kube.patch(PODS, ref, { kind: 'merge', body }));
  };
  const told = () => scene.events.filter((event) => event.startsWith('EIPInvalid')).length;
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), wrong);
  t.true(await scene.until(() => told() === 1));
  await annotate(null);
  await pass(scene, 10_000);
  await annotate(wrong[ATTRIBUTES]);
  t.true(await scene.until(() => told() === 2, 60_000));
  await scene.deletePod('web-0');
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), wrong);
  t.true(await scene.until(() => told() === 3, 60_000));
  await pass(scene, 60_000);
  t.is(told(), 3);
});

test('runEips: takes no EIP away from whom it is bound to, and says whose it is', async (t) => {
  const scene = await EipScene.open();
  const theirs = await scene.lend();
  const { state } = scene.host.model;
  const eip = state.eips.get(theirs);
  const eni = state.enisOf('ins-eiptestn2').find((one) => !one.isPrimary);
  const address = eni?.ips.get(scene.ip('n2', 5));
  if (eip === undefined || eni === undefined || address === undefined) return t.fail('the scene lacks something');
  eip.status = 'BIND_ENI';
  eip.binding = { eniId: eni.eniId, ip: address.ip, isOfInstance: false };
  address.eipId = theirs;
  scene.lead();
  await scene.addPod('db-0', 'n1', scene.ip('n1', 0), { [ID_LIST]: theirs });
  await scene.addPod('db-1', 'n1', scene.ip('n1', 1), { [ID_LIST]: `${theirs},eip-00000000` });
  t.true(await scene.until(() => ['db-0', 'db-1'].every((name) => scene.claim(name)?.status?.phase === 'Failed')));
  const { message = '' } = scene.claim('db-0')?.status ?? {};
  t.true(message.includes(`ENI ${eni.eniId}, address ${address.ip}`), message);
  t.regex(scene.claim('db-1')?.status?.message ?? '', /eip-00000000 does not exist/);
  await pass(scene, 300_000);
  t.is(eip.binding.ip, address.ip, 'it is theirs still');
  await scene.deletePod('db-0');
  t.true(await scene.until(() => scene.claimObject('db-0') === undefined));
  t.is(eip.binding.ip, address.ip);
  t.deepEqual(scene.violations, []);
});

test('runEips: two Pods without a number share a list, and one EIP has one Pod', async (t) => {
  const scene = await EipScene.open();
  const list = [await scene.lend(), await scene.lend()];
  scene.lead();
  const names = ['api-abc', 'api-xyz', 'api-klm'];
  for (const [index, name] of names.entries()) {
    await scene.addPod(name, 'n1', scene.ip('n1', index), { [ID_LIST]: list.join(',') });
  }
  const served = (): readonly string[] => names.filter((name) => scene.isServed(name));
  t.true(await scene.until(() => served().length === 2));
  await pass(scene, 120_000);
  t.is(served().length, 2);
  const [first = ''] = served();
  await scene.deletePod(first);
  const others = names.filter((name) => name !== first);
  t.true(await scene.until(() => others.every((name) => scene.isServed(name))), 'what is free is the third one’s');
});

test('runEips: words a quota as the product does, does not hammer the cloud, and goes on when there is room', async (t) => {
  const scene = await EipScene.open({ eips: 0, eipsPerDay: 100 });
  scene.lead();
  for (let index = 0; index < 4; index++) await scene.addPod(`web-${index}`, 'n1', scene.ip('n1', index), WISH);
  await pass(scene, HOUR_MS);
  const calls = scene.host.seen.filter(({ action }) => action === 'AllocateAddresses').length;
  t.true(calls >= 4 && calls < 30, `${calls} calls in an hour`);
  const [told = ''] = scene.events.filter((event) => event.startsWith('FailedAllocateEIP'));
  t.regex(
    told,
    /^FailedAllocateEIP: Failed to create eip: failed to allocate eip: \[TencentCloudSDKError\] Code=AddressQuotaLimitExceeded, Message=.*, RequestId=/,
  );
  t.is(scene.claim('web-0')?.status?.phase, 'Pending');
  Object.assign(scene.host.model.state.spec, { eips: 10 });
  const names = [0, 1, 2, 3].map((index) => `web-${index}`);
  t.true(await scene.until(() => names.every((name) => scene.isServed(name)), HOUR_MS));
  t.deepEqual(scene.violations, []);
});

test('runEips: says which right is missing, and allocates once it is granted', async (t) => {
  const scene = await EipScene.open();
  scene.host.faults.add({
    fault: { kind: 'error', code: 'UnauthorizedOperation' },
    actions: ['AllocateAddresses'],
    times: 3,
  });
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), WISH);
  t.true(await scene.until(() => scene.isServed('web-0'), HOUR_MS));
  t.true(scene.events.some((event) => /^FailedAllocateEIP: .*Code=UnauthorizedOperation/.test(event)));
});

test('runEips: gives a node no more EIPs than it may have, and the place to the next', async (t) => {
  const scene = await EipScene.open({}, 1);
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), WISH);
  t.true(await scene.until(() => scene.isServed('web-0')));
  await scene.addPod('web-1', 'n1', scene.ip('n1', 1), WISH);
  t.true(await scene.until(() => scene.events.some((event) => event.startsWith('EIPLimitOfNode'))));
  t.is(scene.eips().length, 1, 'none is made for a Pod that cannot have it');
  await scene.deletePod('web-0');
  t.true(await scene.until(() => scene.isServed('web-1')));
});

test('runEips: an EIP that somebody unbinds or releases by hand is bound or made again', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), WISH);
  t.true(await scene.until(() => scene.isServed('web-0')));
  const { state } = scene.host.model;
  const [eip] = scene.madeFor('web-0');
  const bound = state.enis.get(eip?.binding?.eniId ?? '')?.ips.get(scene.ip('n1', 0));
  if (eip === undefined || bound === undefined) return t.fail('nothing is bound');
  state.unbindEip(bound);
  t.false(scene.isServed('web-0'));
  t.true(await scene.until(() => scene.isServed('web-0')));
  state.unbindEip(bound);
  state.eips.delete(eip.eipId);
  t.true(await scene.until(() => scene.isServed('web-0')));
  t.not(scene.madeFor('web-0')[0]?.eipId, eip.eipId);
  t.true(scene.events.some((event) => event.startsWith('EIPGone')));
});

test('runEips: a claim that is gone leaves no EIP: its Pod gets it back, and what is nobody’s is released', async (t) => {
  const scene = await EipScene.open();
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), KEPT);
  await scene.addPod('web-1', 'n1', scene.ip('n1', 1), KEPT);
  t.true(await scene.until(() => scene.isServed('web-0') && scene.isServed('web-1')));
  const before = scene.madeFor('web-0')[0]?.eipId;
  await scene.deletePod('web-1');
  t.true(await scene.until(() => scene.claim('web-1')?.status?.phase === 'Retained'));
  for (const name of ['web-0', 'web-1']) await scene.dropClaim(name);
  t.true(await scene.until(() => scene.isServed('web-0')));
  t.is(scene.madeFor('web-0')[0]?.eipId, before, 'by its tag');
  t.true(await scene.until(() => scene.events.some((event) => event.startsWith('OrphanEIPReleased'))));
  t.deepEqual(scene.madeFor('web-1'), []);
  t.deepEqual(scene.violations, []);
});

test('runEips: releases no EIP that a hand wrote into a claim', async (t) => {
  const scene = await EipScene.open();
  const theirs = await scene.lend();
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), KEPT);
  t.true(await scene.until(() => scene.isServed('web-0')));
  await scene.deletePod('web-0');
  t.true(await scene.until(() => scene.claim('web-0')?.status?.phase === 'Retained'));
  const own = scene.claim('web-0')?.status?.eipID;
  // A leader that lives undoes it.
  scene.die();
  const body = { status: { eipID: theirs, isOurs: true } };
  const ref = { namespace: 'default', name: 'web-0' };
  await scene.clock.run(scene.kube.patch(EIP_CLAIMS, ref, { kind: 'merge', body }));
  await scene.clock.run(scene.deleteClaim('web-0'));
  t.true(await scene.until(() => scene.claimObject('web-0') === undefined));
  t.is(scene.host.model.state.eips.get(theirs)?.status, 'UNBIND');
  t.true(scene.events.some((event) => event.startsWith('EIPLeft')));
  t.true(await scene.until(() => scene.madeFor('web-0').length === 0), `${own} is nobody's, and released`);
  t.deepEqual(scene.violations, []);
});

test('runEips: a kept EIP goes when its time is over, and not before', async (t) => {
  const scene = await EipScene.open();
  scene.claimExpiredMs = HOUR_MS;
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), KEPT);
  const short = { ...KEPT, 'tke.cloud.tencent.com/claim-expired-duration': '5m' };
  await scene.addPod('web-1', 'n1', scene.ip('n1', 1), short);
  t.true(await scene.until(() => scene.isServed('web-0') && scene.isServed('web-1')));
  for (const name of ['web-0', 'web-1']) await scene.deletePod(name);
  await pass(scene, 280_000);
  t.is(scene.claim('web-1')?.status?.phase, 'Retained');
  await pass(scene, 60_000);
  t.is(scene.claimObject('web-1'), undefined);
  t.is(scene.claim('web-0')?.status?.phase, 'Retained');
  await pass(scene, HOUR_MS);
  t.is(scene.claimObject('web-0'), undefined);
  t.deepEqual(scene.eips(), []);
});
