import test from 'ava';
import { CUSTOM_RESOURCE_DEFINITIONS, NODE_ENI_CONFIGS } from '../../../../kube/resource-types.ts';
import { CiliumScene } from './cilium-scene.ts';

const ALONE = ['--leader-elect=false'];

/** Two nodes with Pods, whose CiliumNodes people are about to edit. */
async function openEdited() {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ALONE });
  await scene.join('n1');
  await scene.join('n2');
  await scene.startPods('n1', 2);
  await scene.startPods('n2', 2);
  await scene.until(() => scene.isSettled('n1') && scene.isSettled('n2'), 'settled');
  scene.isEdited = true;
  return { scene, ipamd, isSaid: (text: string) => scene.events().some((one) => one.includes(text)) };
}

test('an address that a person adds to a pool is named, and goes by the states', async (t) => {
  const { scene, ipamd, isSaid } = await openEdited();
  await scene.patchNode('n1', { spec: { ipam: { pool: { '10.9.9.9': {} } } } });
  await scene.until(() => isSaid('10.9.9.9'), 'it is reported');
  await scene.until(() => scene.ipam('n1').operatorError !== '', 'and in the object');
  t.regex(scene.ipam('n1').operatorError, /CiliumPoolContested: .*10\.9\.9\.9/);
  t.true(scene.poolIps('n1').includes('10.9.9.9'));
  // A Pod that ends is a sign of life of the agent.
  await scene.endPod('n1-0', 'n1');
  await scene.until(() => !scene.poolIps('n1').includes('10.9.9.9') && scene.isSettled('n1'), 'it goes');
  t.is(scene.ipam('n1').operatorError, '');
  t.is(scene.ipam('n2').operatorError, '');
  await scene.run(ipamd.close());
});

test('an address of another node in a pool is named with both nodes, and its own node keeps it', async (t) => {
  const { scene, ipamd, isSaid } = await openEdited();
  const used = new Set(scene.agents.get('n2')?.sandboxes.values());
  const ip = scene.poolIps('n2').find((one) => !used.has(one)) ?? '';
  await scene.patchNode('n1', { spec: { ipam: { pool: { [ip]: {} } } } });
  await scene.until(() => isSaid(`${ip} (also in the pool of n2)`), 'it is reported');
  await scene.endPod('n1-0', 'n1');
  await scene.until(() => scene.isSettled('n1') && scene.isSettled('n2'), 'settled');
  t.true(scene.poolIps('n2').includes(ip));
  t.false(scene.poolIps('n1').includes(ip));
  await scene.run(ipamd.close());
});

test('entries that cannot be read stay, are named, and hold up nothing', async (t) => {
  const { scene, ipamd, isSaid } = await openEdited();
  const pool = { '10.1.0.0/24': {}, 'not-an-address': {}, '10.8.8.8': 'text' };
  await scene.patchNode('n1', { spec: { ipam: { pool, 'pre-allocate': -4, 'min-allocate': 'many' } } });
  const releases = { '10.8.8.9': 'please', x: 'marked-for-release' };
  await scene.patchNode('n1', { status: { ipam: { 'release-ips': releases } } }, 'status');
  await scene.until(() => isSaid('CIDRs are not served'), 'it is reported');
  t.true(isSaid('CiliumNodeInvalid'));
  await scene.startPod('more-1', 'n1');
  await scene.startPod('more-2', 'n1');
  await scene.until(() => scene.ipam('n1').pool.size === 11, 'four Pods, router, health and five');
  const raw = JSON.stringify(scene.node('n1'));
  for (const key of Object.keys(pool)) t.true(raw.includes(`"${key}"`), key);
  await scene.run(ipamd.close());
});

test('a pool that a person empties is filled again; owners that a person writes are taken out', async (t) => {
  const { scene, ipamd } = await openEdited();
  const before = scene.poolIps('n1');
  await scene.patchNode('n1', { spec: { ipam: null } });
  await scene.until(() => scene.isSettled('n1'), 'filled');
  t.deepEqual(scene.poolIps('n1'), before);
  const used = new Set(scene.agents.get('n1')?.sandboxes.values());
  const ip = before.find((one) => !used.has(one)) ?? '';
  await scene.patchNode('n1', { spec: { ipam: { pool: { [ip]: { owner: 'nobody/there', resource: 'eni-x' } } } } });
  await scene.until(() => scene.ipam('n1').pool.get(ip)?.owner === undefined, 'the owner is out');
  t.not(scene.ipam('n1').pool.get(ip)?.resource, 'eni-x');
  await scene.run(ipamd.close());
});

test('a full subnet is the error of the CiliumNode, and an event of the Node', async (t) => {
  const { scene, ipamd, isSaid } = await openEdited();
  scene.shell.host.faults.add({
    fault: { kind: 'error', code: 'ResourceInsufficient.SubnetIpInsufficient' },
    actions: ['AssignPrivateIpAddresses', 'CreateNetworkInterface'],
  });
  for (let pod = 0; pod < 5; pod++) await scene.startPod(`more-${pod}`, 'n1');
  await scene.until(() => isSaid('CiliumPoolExhausted'), 'it is reported');
  await scene.until(() => scene.ipam('n1').operatorError !== '', 'and in the object');
  t.regex(scene.ipam('n1').operatorError, /^CiliumPoolExhausted: no address is free: /);
  await scene.run(ipamd.close());
});

test('a definition that is deleted and comes back stops nothing else', async (t) => {
  const { scene, ipamd } = await openEdited();
  const ref = { name: 'ciliumnodes.cilium.io' };
  scene.killAgent('n1');
  scene.killAgent('n2');
  await scene.run(scene.shell.kube.delete(CUSTOM_RESOURCE_DEFINITIONS, ref));
  await scene.pass(60_000);
  await scene.join('n3', { isLabelled: false, hasAgent: false });
  await scene.until(() => scene.assigned('n3').length > 0, 'other nodes are served');
  await scene.define();
  scene.startAgent('n1');
  scene.startAgent('n2');
  await scene.until(() => scene.isSettled('n1') && scene.isSettled('n2'), 'served again');
  await scene.until(() => scene.poolIps('n1').length === 9, 'two Pods, router, health and five');
  t.deepEqual(scene.poolIps('n1'), scene.assigned('n1'));
  await scene.run(ipamd.close());
});

test('an agent that writes the demand too is named, and the two do not fight', async (t) => {
  const { scene, ipamd, isSaid } = await openEdited();
  const ref = { name: 'n1' };
  const patch = { kind: 'merge', body: { spec: { desiredRouteENIIP: 3 } } } as const;
  let undone = 0;
  for (let second = 0; second < 300; second++) {
    await scene.pass(1_000);
    if (scene.specOf('n1').desiredRouteENIIP === 3) continue;
    undone += 1;
    await scene.run(scene.shell.kube.patch(NODE_ENI_CONFIGS, ref, patch));
  }
  t.true(isSaid('CiliumDemandContested'));
  t.true(undone < 15, `${undone} writes in five minutes`);
  await scene.until(() => scene.specOf('n1').desiredRouteENIIP !== 3, 'it is written once more');
  await scene.run(ipamd.close());
});
