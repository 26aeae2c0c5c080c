// Kept addresses on the cloud model, call by call; what is decided is in test/ipamd/decide/kept-laws.test.ts.
import test from 'ava';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { KeptScene } from '../support/kept-scene.ts';

const WEB = 'ns/web-0';
const IP = '10.1.0.77';

function count(scene: KeptScene, action: string): number {
  return scene.calls.filter((name) => name === action).length;
}

test('reconcileNode: gives a Pod the address that it asks for, on an ENI of its subnet', async (t) => {
  const scene = await KeptScene.open();
  scene.put(WEB, { uid: 'uid-1', node: 'node-a', ip: IP });
  t.true(await scene.until(() => scene.marked('node-a', WEB)[0]?.claim?.uid === 'uid-1'));
  t.is(scene.marked('node-a', WEB)[0]?.ip, IP);
  t.is(scene.nec('node-a')?.status?.eniInfos?.[0]?.subnetID, 'subnet-podsa000');
  t.is(scene.nec('node-a')?.status?.staticRouteENIIPs, 1);
  t.deepEqual(scene.calls, ['CreateNetworkInterface', 'AttachNetworkInterface', 'AssignPrivateIpAddresses']);
});

test('reconcileNode: keeps an address without a Pod, though its agent offers it', async (t) => {
  const scene = await KeptScene.open();
  scene.put(WEB, { uid: 'uid-1', node: 'node-a' });
  t.true(await scene.until(() => scene.marked('node-a', WEB)[0]?.claim?.uid === 'uid-1'));
  const ip = scene.marked('node-a', WEB)[0]?.ip ?? '';
  scene.put(WEB, { ip });
  await scene.clock.advance(120_000);
  t.like(scene.marked('node-a', WEB), [{ ip, state: 'Assigned', claim: { namespace: 'ns', name: 'web-0' } }]);
  t.is(scene.marked('node-a', WEB)[0]?.claim?.uid, undefined);
  t.is(scene.nec('node-a')?.spec?.releasableIPs?.length, 1);
  scene.put(WEB, { uid: 'uid-2', node: 'node-a', ip });
  t.true(await scene.until(() => scene.marked('node-a', WEB)[0]?.claim?.uid === 'uid-2'));
  t.is(count(scene, 'UnassignPrivateIpAddresses'), 0);
});

for (const crash of [undefined, { isAfter: false }, { isAfter: true }] as const) {
  const dies =
    crash === undefined ? 'nothing goes wrong' : `its leader dies ${crash.isAfter ? 'after' : 'before'} the call`;
  test(`reconcileNode: moves a kept address to the node of its Pod once its sandbox is gone when ${dies}`, async (t) => {
    const scene = await KeptScene.open();
    scene.put(WEB, { uid: 'uid-1', node: 'node-a', ip: IP });
    t.true(await scene.until(() => scene.marked('node-a', WEB)[0]?.claim?.uid === 'uid-1'));
    scene.inUse.add(IP);
    scene.put(WEB, { ip: IP });
    scene.put(WEB, { uid: 'uid-2', node: 'node-b', ip: IP });
    await scene.clock.advance(60_000);
    t.is(scene.marked('node-a', WEB)[0]?.state, 'Assigned', 'a sandbox has it');
    t.is(count(scene, 'MigratePrivateIpAddress'), 0);
    if (crash !== undefined) scene.crashAt = { action: 'MigratePrivateIpAddress', ...crash };
    scene.inUse.delete(IP);
    if (crash !== undefined) {
      t.true(await scene.until(() => scene.crashAt === undefined));
      scene.lead();
    }
    const isThere = () =>
      scene.marked('node-b', WEB)[0]?.claim?.uid === 'uid-2' && scene.marked('node-a', WEB).length === 0;
    t.true(await scene.until(isThere));
    t.is(scene.eniOf(IP), scene.nec('node-b')?.status?.eniInfos?.[0]?.eniID);
    t.is(count(scene, 'UnassignPrivateIpAddresses'), 0);
    t.deepEqual(scene.refused, []);
    t.deepEqual(scene.violations, []);
    t.true(await scene.until(() => (scene.nec('node-b')?.status?.intents ?? []).length === 0));
  });
}

test('reconcileNode: tells of an address that somebody else has, and gives another claim its own meanwhile', async (t) => {
  const scene = await KeptScene.open();
  scene.put(WEB, { uid: 'uid-1', node: 'node-a', ip: IP });
  t.true(await scene.until(() => scene.marked('node-a', WEB).length === 1));
  scene.put('ns/thief', { uid: 'uid-9', node: 'node-b', ip: IP });
  scene.put('ns/other', { uid: 'uid-3', node: 'node-b', ip: '10.1.0.78' });
  t.true(await scene.until(() => scene.marked('node-b', 'ns/other')[0]?.claim?.uid === 'uid-3'));
  t.true(await scene.until(() => scene.refused.length > 0));
  t.is(scene.refused[0], 'ns/thief ResourceInUse');
  t.regex(scene.waits.get('ns/thief') ?? '', /ResourceInUse/);
  t.deepEqual(scene.marked('node-b', 'ns/thief'), []);
  t.is(scene.marked('node-a', WEB)[0]?.claim?.uid, 'uid-1');
});

test('reconcileNode: takes the address of a claim that ends off its ENI once the agent has let go of it', async (t) => {
  const scene = await KeptScene.open();
  scene.put(WEB, { uid: 'uid-1', node: 'node-a', ip: IP });
  t.true(await scene.until(() => scene.marked('node-a', WEB)[0]?.claim?.uid === 'uid-1'));
  scene.inUse.add(IP);
  scene.put(WEB, { ip: IP, isEnding: true });
  await scene.clock.advance(60_000);
  t.is(scene.marked('node-a', WEB)[0]?.claim?.uid, undefined);
  t.is(scene.marked('node-a', WEB)[0]?.state, 'Assigned');
  scene.inUse.delete(IP);
  t.true(await scene.until(() => scene.eniOf(IP) === undefined));
  t.true(await scene.until(() => scene.marked('node-a', WEB).length === 0));
});

const FAULTS: Readonly<Record<string, Fault>> = {
  'a timeout before the effect': { kind: 'hang' },
  'a timeout after the effect': { kind: 'hang', after: true },
  'a reset before the effect': { kind: 'reset' },
  'a reset after the effect': { kind: 'reset', after: true },
  'an error after the effect': { kind: 'error', code: 'InternalError', after: true },
  'a refusal': { kind: 'error', code: 'UnsupportedOperation.InvalidState' },
  'a task that fails': { kind: 'task', fate: 'fail' },
  'a task that vanishes': { kind: 'task', fate: 'vanish' },
  'a task of a minute': { kind: 'slow-task', ms: 60_000 },
};

for (const action of ['AssignPrivateIpAddresses', 'MigratePrivateIpAddress'] as const) {
  for (const crash of [undefined, { isAfter: false }, { isAfter: true }] as const) {
    const dies = crash === undefined ? '' : `, and its leader dies ${crash.isAfter ? 'after' : 'before'} it`;
    test(`reconcileNode: has a kept address on the node of its Pod in the end when ${action} goes wrong${dies}`, async (t) => {
      for (const [name, fault] of Object.entries(FAULTS)) {
        const about = `${action} with ${name}${dies}`;
        const scene = await KeptScene.open();
        scene.host.faults.add({ fault, actions: [action], times: 1 });
        if (crash !== undefined) scene.crashAt = { action, ...crash };
        const reaches = async (holds: () => boolean): Promise<boolean> =>
          await scene.until(() => {
            if (scene.isLeaderless()) scene.lead();
            return holds();
          });
        scene.put(WEB, { uid: 'uid-1', node: 'node-a', ip: IP });
        t.true(await reaches(() => scene.marked('node-a', WEB)[0]?.claim?.uid === 'uid-1'), about);
        scene.put(WEB, { uid: 'uid-2', node: 'node-b', ip: IP });
        const isThere = () => scene.marked('node-b', WEB)[0]?.claim?.uid === 'uid-2' && !scene.marked('node-a', WEB)[0];
        t.true(await reaches(isThere), about);
        t.true(await reaches(() => scene.isQuiet()), about);
        t.is(scene.eniOf(IP), scene.nec('node-b')?.status?.eniInfos?.[0]?.eniID, about);
        t.is(scene.crashAt, undefined, about);
      }
    });
  }
}
