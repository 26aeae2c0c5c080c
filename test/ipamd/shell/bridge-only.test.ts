import test, { type ExecutionContext } from 'ava';
import { decodeNode } from '../../../ipamd/cache/node-entry.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { CONFIG_MAPS, NODES } from '../../../kube/resource-types.ts';
import { addInstance, nodeOf, type ShellScene, shellScene } from './shell-scene.ts';

const MINUTE_MS = 60_000;
const TAINT = { key: 'tke.cloud.tencent.com/eni-ip-unavailable', value: 'true', effect: 'NoSchedule' };
const OTHER = { key: 'example.com/held', effect: 'NoSchedule' };
const CONDITION = { type: 'ENIIPUnavailable', status: 'True', reason: 'NotServing', message: 'no' };
const FLAGS = [
  '--allocate-node-cidrs=true',
  '--cluster-cidr=192.168.0.0/20',
  '--service-cluster-ip-range=192.168.12.0/22',
  '--node-cidr-mask-size=26',
] as const;
const CONFIG_MAP = { namespace: 'kube-system', name: 'tke-eni-ipamd' };

function read(scene: ShellScene, name: string) {
  const node = scene.server.objects('nodes').find(({ metadata }) => metadata['name'] === name);
  // The store's objects are those of the API.
  return decodeNode(node as KubeObject);
}

async function configure(scene: ShellScene, subnets: string): Promise<void> {
  const patch = { kind: 'merge', body: { data: { TKE_ENI_IPAMD_SUBNET_ID: subnets } } } as const;
  await scene.clock.run(scene.kube.patch(CONFIG_MAPS, CONFIG_MAP, patch));
}

test('a cluster of podCIDRs alone: no call for an ENI, no NodeENIConfig, no fault; ENIs once a subnet is there', async (t) => {
  const scene = await shellScene();
  await configure(scene, '');
  const ipamd = await scene.start({ flags: [...FLAGS, '--default-network=tke-bridge', '--sync-interval=1m'] });
  await scene.until(() => ipamd.isLeading);
  for (const name of ['n1', 'n2', 'n3']) await scene.join(name);
  await scene.clock.advance(30 * MINUTE_MS);
  t.deepEqual(
    ['n1', 'n2', 'n3'].map((name) => read(scene, name).podCidrs),
    [['192.168.0.0/26'], ['192.168.0.64/26'], ['192.168.0.128/26']],
  );
  // The limits are those of an instance type, for the day when a subnet comes; the addresses are EIPs.
  const reads = ['DescribeAddresses', 'DescribeInstances', 'DescribeNetworkInterfaceLimit', 'DescribeSubnets'];
  const counts = scene.host.counts();
  t.deepEqual(Object.keys(counts).toSorted(), reads, JSON.stringify(counts));
  t.is(counts['DescribeNetworkInterfaceLimit'], 1);
  t.is(scene.nec('n1'), undefined);
  const metrics = await ipamd.metrics.registry.metrics();
  t.notRegex(metrics, /^tke_eni_ipamd_problem\{/m);
  t.regex(metrics, /^tke_eni_ipamd_pod_cidr_blocks\{state="free"\} 45$/m);
  t.regex(metrics, /^tke_eni_ipamd_pod_cidr_blocks\{state="reserved"\} 16$/m);
  t.regex(metrics, /^tke_eni_ipamd_pod_cidr_writes_total\{outcome="written"\} 3$/m);
  // The same cluster becomes a hybrid one without a restart.
  await configure(scene, 'subnet-pods0001');
  await scene.until(() => scene.nec('n1') !== undefined && scene.nec('n3') !== undefined);
  await scene.clock.run(ipamd.close());
});

/** Registers a Node as TKE does, with the taint, and with the condition that an ipamd wrote before. */
async function joinTainted(t: ExecutionContext, scene: ShellScene, name: string): Promise<void> {
  addInstance(scene.host, `ins-shell${name}`);
  const node = nodeOf(name, `ins-shell${name}`);
  const spec = { ...(node['spec'] as object), taints: [OTHER, TAINT] };
  await scene.clock.run(scene.kube.create(NODES, { ...node, spec, status: { conditions: [CONDITION] } }));
  t.is(read(scene, name).eniIpCondition?.status, 'True');
}

test('a default of tke-bridge: marks for want of ENI addresses go at once, even without the cloud, and come back with the default', async (t) => {
  const scene = await shellScene();
  const marks = ['--enable-node-taint=true', '--enable-node-condition=true'];
  const bridged = await scene.start({ flags: [...FLAGS, ...marks, '--default-network=tke-bridge'] });
  await scene.until(() => bridged.isLeading);
  const restore = scene.host.faults.add({ fault: { kind: 'hang' } });
  await joinTainted(t, scene, 'n1');
  await scene.clock.advance(2_000);
  t.deepEqual(read(scene, 'n1').taints, [OTHER]);
  t.is(read(scene, 'n1').eniIpCondition, undefined);
  restore();
  await scene.until(() => scene.nec('n1') !== undefined);
  await scene.clock.advance(10 * MINUTE_MS);
  t.deepEqual(read(scene, 'n1').taints, [OTHER]);
  t.is(read(scene, 'n1').eniIpCondition, undefined);
  await scene.clock.run(bridged.close());
  const routed = await scene.start({ flags: [...FLAGS, ...marks] });
  await scene.until(() => read(scene, 'n1').taints.length === 2);
  t.deepEqual(read(scene, 'n1').taints, [OTHER, TAINT]);
  await scene.until(() => read(scene, 'n1').eniIpCondition?.status === 'True');
  await scene.clock.run(routed.close());
  const again = await scene.start({ flags: [...FLAGS, ...marks, '--default-network=tke-bridge'] });
  await scene.until(() => read(scene, 'n1').taints.length === 1);
  await scene.until(() => read(scene, 'n1').eniIpCondition === undefined);
  await scene.clock.run(again.close());
});

test('an ipamd that has found another allocator stays stopped when its standby takes over', async (t) => {
  const scene = await shellScene();
  const first = await scene.start({ name: 'first', flags: FLAGS });
  await scene.until(() => first.isLeading);
  const second = await scene.start({ name: 'second', flags: FLAGS });
  await scene.until(() => second.readiness() === undefined);
  const node = nodeOf('k1', 'ins-shellk1');
  addInstance(scene.host, 'ins-shellk1');
  const spec = { ...(node['spec'] as object), podCIDR: '192.168.3.0/26', podCIDRs: ['192.168.3.0/26'] };
  await scene.clock.run(scene.kube.create(NODES, { ...node, spec }));
  await scene.clock.advance(10_000);
  await scene.clock.run(first.close());
  await scene.until(() => second.isLeading);
  await scene.join('n2');
  await scene.clock.advance(MINUTE_MS);
  t.deepEqual(read(scene, 'n2').podCidrs, []);
  t.regex(
    await second.metrics.registry.metrics(),
    /^tke_eni_ipamd_problem\{kind="CIDRAllocatorConflict",name="k1"\} 1$/m,
  );
  await scene.clock.run(second.close());
});

test('without --allocate-node-cidrs no podCIDR is written and nothing is recorded', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start({ flags: FLAGS.slice(1) });
  await scene.until(() => ipamd.isLeading);
  await scene.join('n1');
  await scene.until(() => scene.nec('n1') !== undefined);
  await scene.clock.advance(MINUTE_MS);
  t.deepEqual(read(scene, 'n1').podCidrs, []);
  const names = scene.server.objects('configmaps').map(({ metadata }) => metadata['name']);
  t.false(names.includes('tke-eni-pod-cidrs'));
  await scene.clock.run(ipamd.close());
});
