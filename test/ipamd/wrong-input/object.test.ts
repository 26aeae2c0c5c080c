import test from 'ava';
import type { NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { partOf } from '../../support/suite-part.ts';
import { GOOD, inScene, type StoredNec, type WrongScene } from './wrong-scene.ts';

type Eni = NodeEniInfo;
type Edit = (nec: StoredNec, eni: Eni) => object;

const other = (eni: Eni): Eni => ({
  ...eni,
  eniID: 'eni-invented',
  mac: '20:90:6f:ff:ff:ff',
  primaryIP: '10.1.15.200',
  deviceIndex: 5,
  addresses: (eni.addresses ?? []).slice(0, 1),
});
const intent = {
  id: 'feedfacefeedface',
  phase: 'Recorded',
  leaderEpoch: 1,
  requestTimeoutSeconds: 5,
  recordedAt: '2026-01-01T00:00:00Z',
} as const;
const ENI_INTENT = { ...intent, instanceID: 'ins-wrongn1' };

/** Nonsense that passes the schema: what a person writes, by name. */
const EDITS: Readonly<Record<string, Edit>> = {
  'one address on two ENIs': (_, eni) => ({ status: { eniInfos: [eni, other(eni)] } }),
  'an address outside its subnet': (_, eni) => ({
    status: {
      eniInfos: [
        { ...eni, addresses: [...(eni.addresses ?? []), { ip: '192.168.7.7', assignmentID: 'x', state: 'Assigned' }] },
      ],
    },
  }),
  'an address that is not the node’s': (_, eni) => ({
    status: {
      eniInfos: [
        { ...eni, addresses: [...(eni.addresses ?? []), { ip: '10.1.9.9', assignmentID: 'x', state: 'Assigned' }] },
      ],
    },
  }),
  'an ENI that is not': (_, eni) => ({ status: { eniInfos: [eni, { ...other(eni), addresses: [] }] } }),
  'its ENI Attaching': (_, eni) => ({ status: { eniInfos: [{ ...eni, state: 'Attaching' }] } }),
  'no status': () => ({ status: null }),
  'no spec': () => ({ spec: null }),
  'an intent to detach': (_, eni) => ({
    status: { intents: [{ ...ENI_INTENT, action: 'DetachNetworkInterface', eniID: eni.eniID }] },
  }),
  'an intent to delete': (_, eni) => ({
    status: { intents: [{ ...intent, action: 'DeleteNetworkInterface', eniID: eni.eniID }] },
  }),
  'an intent to unassign what is in use': (_, eni) => ({
    status: {
      intents: [
        { ...intent, action: 'UnassignPrivateIpAddresses', eniID: eni.eniID, ips: eni.addresses?.map(({ ip }) => ip) },
      ],
    },
  }),
  'an intent for an ENI that is not': () => ({
    status: { intents: [{ ...intent, action: 'AssignPrivateIpAddresses', eniID: 'eni-invented', ipCount: 3 }] },
  }),
  'an intent to create what nobody asked for': () => ({
    status: {
      intents: [
        {
          ...intent,
          action: 'CreateNetworkInterface',
          clientToken: intent.id,
          subnetID: 'subnet-nowhere1',
          ipCount: 3,
        },
      ],
    },
  }),
  'an intent of an accepted task that is not': (_, eni) => ({
    status: {
      intents: [
        { ...ENI_INTENT, phase: 'Accepted', taskID: 'nonsense', action: 'AttachNetworkInterface', eniID: eni.eniID },
      ],
    },
  }),
  'an intent of another component': () => ({ status: { intents: [{ ...intent, action: 'AllocateAddresses' }] } }),
  'all its addresses offered': (_, eni) => ({
    spec: { releasableIPs: eni.addresses?.map(({ ip, assignmentID }) => ({ ip, assignmentID })), desiredRouteENIIP: 0 },
  }),
  'offers of what is not': () => ({ spec: { releasableIPs: [{ ip: '1.2.3.4', assignmentID: 'x' }] } }),
  'a higher epoch seen': () => ({ spec: { observedSupplyEpoch: 1_000_000 } }),
  'a higher epoch': () => ({ status: { supplyEpoch: 1_000_000 } }),
  'the highest epoch there is': () => ({ status: { supplyEpoch: Number.MAX_SAFE_INTEGER } }),
  'the highest epoch seen': () => ({ spec: { observedSupplyEpoch: Number.MAX_SAFE_INTEGER } }),
  'limits of nothing': () => ({ spec: { maxRouteENI: 0, maxIPPerENI: 0 } }),
  'limits above all': () => ({ spec: { maxRouteENI: 64, maxIPPerENI: 4096 } }),
  'a demand above all': () => ({ spec: { desiredRouteENIIP: 262_144 } }),
  'conditions of nobody': () => ({
    status: {
      conditions: [
        { type: 'Ready', status: 'Unknown', reason: 'Nonsense', lastTransitionTime: '2020-01-01T00:00:00Z' },
      ],
    },
  }),
  'an applied policy of nobody': () => ({
    metadata: { annotations: { 'tke.cloud.tencent.com/applied-policy': '{{{' } },
  }),
};

/** Addresses of Pods that the cloud does not lead to the node any more. */
function lostPods(scene: WrongScene, ips: readonly string[]): readonly string[] {
  const enis = [...scene.host.model.state.enis.values()].filter((eni) => eni.attachment?.instanceId === 'ins-wrongn1');
  return ips.filter((ip) => !enis.some((eni) => eni.ips.get(ip)?.state === 'AVAILABLE'));
}

// One of three. Each field of a status is left out and changed in status-fields.test.ts.
for (const [what, edit] of partOf(Object.entries(EDITS), ([one]) => Object.keys(EDITS).indexOf(one) % 3 === 0)) {
  test(`NodeENIConfig edited by hand: ${what}`, async (t) => {
    await inScene(GOOD, async (scene) => {
      await scene.join('n1');
      await scene.awaitWarm('n1');
      const ips = scene
        .assigned('n1')
        .slice(0, 2)
        .map(({ ip }) => ip);
      for (const [index, ip] of ips.entries()) await scene.runPod(`p${index}`, 'n1', ip);
      await scene.clock.advance(10_000);
      const nec = scene.nec('n1');
      const eni = nec?.status?.eniInfos?.[0];
      if (nec === undefined || eni === undefined) throw new Error('no ENI');
      try {
        await scene.patch('nec', 'n1', edit(nec, eni));
      } catch (error) {
        if (!isKubeError(error, 'INVALID')) throw error;
        t.log(`refused by the schema: ${error.message.slice(0, 300)}`);
        t.pass();
        return;
      }
      for (let second = 0; second < 120; second += 2) {
        t.deepEqual(lostPods(scene, ips), [], `after ${second} s`);
        await scene.clock.advance(1_000);
        await scene.answer('n1');
      }
      await scene.assertOthersGoOn(t);
      // An edit that nothing tells of is found by the next comparison of all nodes with the cloud.
      for (let waited = 0; waited < 900 && scene.differences('n1').length > 0; waited += 5) {
        t.deepEqual(lostPods(scene, ips), [], `after ${waited} s more`);
        await scene.clock.advance(5_000);
      }
      t.deepEqual(scene.differences('n1'), []);
      t.deepEqual(lostPods(scene, ips), []);
      await scene.patch('nec', 'n1', { spec: { desiredRouteENIIP: 12, maxRouteENI: 3, maxIPPerENI: 9 } });
      await scene.until('it grows', () => scene.assigned('n1').length >= 12);
      t.log(
        [
          ...scene.wrongs('n1'),
          ...(await scene.problems()),
          ...scene.events().filter((line) => line.includes('/n1')),
        ].join('\n'),
      );
    });
  });
}

test('NodeENIConfig with another id for its ENI, and a demand: the cloud is not asked in vain without a pause', async (t) => {
  await inScene(GOOD, async (scene) => {
    await scene.join('n1');
    await scene.awaitWarm('n1');
    await scene.clock.advance(20_000);
    const ips = scene.assigned('n1').map(({ ip }) => ip);
    const [eni] = scene.nec('n1')?.status?.eniInfos ?? [];
    scene.host.forget();
    const eniInfos = [{ ...eni, eniID: 'eni-invented' }];
    // A leader undoes it before it calls the cloud.
    await scene.close();
    await scene.patch('nec', 'n1', { status: { eniInfos }, spec: { desiredRouteENIIP: 8 } });
    await scene.start();
    await scene.until('it is mended', () => ips.every((ip) => scene.assigned('n1').some((one) => one.ip === ip)));
    await scene.until('all is in step', () => scene.differences('n1').length === 0 && scene.assigned('n1').length >= 8);
    const inVain = scene.host.seen.filter(({ code }) => code === 'ResourceNotFound').length;
    t.true(inVain > 0 && inVain < 10, `${inVain} calls`);
    t.deepEqual(lostPods(scene, ips), []);
  });
});

test('NodeENIConfig whose agent has seen a later epoch: it is made again within seconds, also when another writer was faster', async (t) => {
  await inScene(GOOD, async (scene) => {
    await scene.join('n1');
    await scene.awaitWarm('n1');
    await scene.clock.advance(120_000);
    const epoch = () => scene.nec('n1')?.status?.supplyEpoch ?? 0;
    const seen = epoch() + 3;
    const action = { kind: 'status', code: 409, reason: 'Conflict' } as const;
    const rule = { userAgent: 'ipamd', verbs: ['update'], resources: ['nodeeniconfigs'], times: 1, action };
    scene.server.api.faults.add(rule);
    await scene.patch('nec', 'n1', { spec: { observedSupplyEpoch: seen } });
    await scene.clock.advance(20_000);
    t.true(epoch() > seen);
  });
});

test('NodeENIConfig without its finalizer: gets it back, so that its deletion leaves no ENI behind', async (t) => {
  await inScene(GOOD, async (scene) => {
    await scene.join('n1');
    await scene.awaitWarm('n1');
    await scene.patch('nec', 'n1', { metadata: { finalizers: null } });
    await scene.until('the finalizer is back', () => (scene.nec('n1')?.metadata.finalizers ?? []).length > 0);
    t.is(scene.nec('n1')?.metadata.finalizers?.length, 1);
  });
});
