import test from 'ava';
import { partOf } from '../../support/suite-part.ts';
import { GOOD, inScene, type WrongScene } from './wrong-scene.ts';

type Refused = {
  readonly action: string;
  /** What makes ipamd ask for it. */
  readonly when: (scene: WrongScene) => Promise<void>;
  readonly reason: string;
  /** `name` of the metric. */
  readonly name: string;
  readonly on?: string;
  readonly othersGoOn: boolean;
};

const want = (count: number) => (scene: WrongScene) => scene.patch('nec', 'n1', { spec: { desiredRouteENIIP: count } });
const joinAnother = (scene: WrongScene): Promise<void> => scene.join('n2');
const nothing = async (): Promise<void> => undefined;
const giveBack = async (scene: WrongScene): Promise<void> => {
  const [address] = scene.assigned('n1');
  await scene.patch('nec', 'n1', { spec: { desiredRouteENIIP: 1, releasableIPs: [address] } });
  await scene.answer('n1');
};
const giveAllBack = async (scene: WrongScene): Promise<void> => {
  const annotations = { 'tke.cloud.tencent.com/disable-node-eni': 'true' };
  await scene.patch('node', 'n1', { metadata: { annotations } });
  const releasableIPs = scene.assigned('n1').map(({ ip, assignmentID }) => ({ ip, assignmentID }));
  await scene.patch('nec', 'n1', { spec: { releasableIPs } });
  await scene.answer('n1');
};
const setGroups = (scene: WrongScene): Promise<void> =>
  scene.patch('nec', 'n1', { spec: { securityGroups: ['sg-default0', 'sg-more0001'] } });
const OF_N1 = { reason: 'Forbidden', name: 'n1', on: 'n1' } as const;

const REFUSED: readonly Refused[] = [
  { action: 'CreateNetworkInterface', when: want(40), ...OF_N1, othersGoOn: false },
  { action: 'AttachNetworkInterface', when: want(40), ...OF_N1, othersGoOn: false },
  { action: 'AssignPrivateIpAddresses', when: want(12), ...OF_N1, othersGoOn: true },
  { action: 'UnassignPrivateIpAddresses', when: giveBack, ...OF_N1, othersGoOn: true },
  { action: 'DetachNetworkInterface', when: giveAllBack, ...OF_N1, othersGoOn: true },
  { action: 'DeleteNetworkInterface', when: giveAllBack, ...OF_N1, othersGoOn: true },
  { action: 'ModifyNetworkInterfaceAttribute', when: setGroups, ...OF_N1, othersGoOn: true },
  { action: 'DescribeInstances', when: joinAnother, reason: 'Forbidden', name: 'n2', othersGoOn: false },
  { action: 'DescribeSubnets', when: nothing, reason: 'Forbidden', name: 'tke-eni-ipamd', on: 'n1', othersGoOn: true },
];

const CODES = ['UnauthorizedOperation', 'AuthFailure.UnauthorizedOperation'] as const;

for (const { action, when, reason, name, on, othersGoOn } of REFUSED) {
  for (const code of partOf(CODES, (one) => one === 'UnauthorizedOperation')) {
    test(`the cloud forbids ${action} (${code}): condition, event and metric name it; over when it is allowed`, async (t) => {
      await inScene(GOOD, async (scene) => {
        await scene.join('n1');
        await scene.awaitWarm('n1');
        const before = scene.assigned('n1').length;
        const allow = scene.host.faults.add({ fault: { kind: 'error', code }, actions: [action] });
        await when(scene);
        const says = new RegExp(code.replace('.', '\\.'));
        await scene.assertNamed(t, { reason, says, name, ...(on === undefined ? {} : { on }) });
        if (othersGoOn) await scene.assertOthersGoOn(t);
        if (
          action !== 'UnassignPrivateIpAddresses' &&
          action !== 'DetachNetworkInterface' &&
          action !== 'DeleteNetworkInterface'
        )
          t.true(scene.assigned('n1').length >= before);
        allow();
        await scene.assertOthersGoOn(t);
        // What was got round is asked for again when there is a need.
        if (action.startsWith('Assign')) await want(14)(scene);
        for (let waited = 0; waited < 300 && (await scene.problems()).length > 0; waited += 5)
          await scene.clock.advance(5_000);
        t.deepEqual(await scene.problems(), []);
      });
    });
  }
}

test('the cloud tells nothing of ENIs: what is there serves on, and metrics name the call', async (t) => {
  await inScene(GOOD, async (scene) => {
    await scene.join('n1');
    await scene.awaitWarm('n1');
    const fault = { kind: 'error', code: 'UnauthorizedOperation' } as const;
    const allow = scene.host.faults.add({ fault, actions: ['DescribeNetworkInterfaces'] });
    await scene.join('n2');
    await scene.clock.advance(120_000);
    await scene.assertNamed(t, {
      reason: 'Forbidden',
      says: /DescribeNetworkInterfaces.*UnauthorizedOperation/,
      name: 'n2',
      on: 'n2',
    });
    t.true(scene.assigned('n1').length >= 5);
    allow();
    await scene.awaitWarm('n2');
    await scene.assertOver(t, 'n2');
  });
});

test('the cloud tells nothing of limits: the table is taken, and that is said', async (t) => {
  await inScene(GOOD, async (scene) => {
    const fault = { kind: 'error', code: 'UnauthorizedOperation' } as const;
    scene.host.faults.add({ fault, actions: ['DescribeNetworkInterfaceLimit'] });
    await scene.join('n1');
    await scene.awaitWarm('n1');
    await scene.assertNamed(t, { reason: 'InstanceTypeUnknown', says: /S5\.8CORE/, name: 'n1', on: 'n1' });
    await scene.assertOthersGoOn(t);
  });
});

for (const code of [
  'AuthFailure.SecretIdNotFound',
  'AuthFailure.TokenFailure',
  'AuthFailure.SignatureExpire',
  'UnsupportedRegion',
]) {
  test(`every call answers ${code}: event and metric name it, nothing is lost, and it is over by itself`, async (t) => {
    await inScene(GOOD, async (scene) => {
      await scene.join('n1');
      await scene.awaitWarm('n1');
      const before = scene.assigned('n1');
      const end = scene.host.faults.add({ fault: { kind: 'error', code } });
      await scene.join('n2');
      const says = new RegExp(code.replace('.', '\\.'));
      await scene.assertNamed(t, { reason: 'Forbidden', says, name: 'n2' });
      await scene.assertNamed(t, { reason: 'Forbidden', says, name: 'tke-eni-ipamd', on: 'n1' });
      const isRegion = code === 'UnsupportedRegion';
      const ofAll = isRegion
        ? { reason: 'ConfigInvalid', name: 'region' }
        : { reason: 'CredentialsRefused', name: 'key' };
      await scene.assertNamed(t, { ...ofAll, says: isRegion ? /set --region/ : /check --credentials/ });
      t.deepEqual(scene.assigned('n1'), before);
      end();
      await scene.awaitWarm('n2');
      await scene.assertOver(t, 'n1');
    });
  });
}
