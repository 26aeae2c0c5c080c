import test from 'ava';
import { POD_ANNOTATION } from '../../../../crd/names.ts';
import { VPC_IP_CLAIMS } from '../../../../kube/resource-types.ts';
import { isRecord } from '../../../../runtime/decode.ts';
import { StaticCluster } from './static-cluster.ts';
import { VirtualKubelet } from './super-nodes.ts';

async function sceneOf(flags: readonly string[] = []) {
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, flags);
  const eklet = new VirtualKubelet(cluster);
  await eklet.join('eklet-1');
  await eklet.join('eklet-2');
  await cluster.startIpamd();
  const { state } = cluster.scene.host.model;
  const reservedIps = (): readonly string[] => [...state.reservedIps.reservations.values()].map(({ ip }) => ip);
  const publishedOf = (name: string): unknown => {
    const status = cluster.claim(name)?.['status'];
    const conditions = isRecord(status) && Array.isArray(status['conditions']) ? status['conditions'] : [];
    const found = conditions.find((one: unknown) => isRecord(one) && one['type'] === 'Published');
    return isRecord(found) ? `${String(found['status'])} ${String(found['reason'])}` : undefined;
  };
  /** A Pod of a CVM node, or of a super node, until it runs; returns its address. */
  const run = async (node: string, annotations: Readonly<Record<string, string>> = {}): Promise<string> => {
    const uid = await cluster.createPod('web-0', node, annotations);
    const ipOf = (): string | undefined => eklet.ipOf(uid) ?? cluster.ipOf(uid);
    await eklet.until(
      () => ipOf() !== undefined && cluster.phase('web-0') === 'Bound',
      () => `web-0 on ${node}: ${cluster.why('web-0')}`,
    );
    return ipOf() ?? '';
  };
  const remove = async (): Promise<void> => {
    await eklet.deletePod('web-0');
    await eklet.until(
      () => cluster.phase('web-0') === 'Retained',
      () => cluster.why('web-0'),
    );
  };
  return { cluster, eklet, state, reservedIps, publishedOf, run, remove };
}

test('a Pod of a super node gets an address that the VPC reserves, and keeps it between super and CVM nodes', async (t) => {
  const { cluster, eklet, reservedIps, publishedOf, run, remove } = await sceneOf();
  const ip = await run('eklet-1');
  t.deepEqual(reservedIps(), [ip]);
  t.is(publishedOf('web-0'), 'True Annotated');
  for (const node of ['eklet-2', 'a', 'eklet-1', 'b', 'a', 'eklet-2']) {
    await remove();
    t.is(await run(node), ip, node);
    t.is(publishedOf('web-0'), node.startsWith('eklet') ? 'True Annotated' : 'False NoSuperNode');
  }
  await remove();
  await cluster.deleteClaim('web-0');
  await eklet.until(
    () => cluster.claim('web-0') === undefined,
    () => cluster.why('web-0'),
  );
  t.deepEqual(reservedIps(), []);
  t.is(cluster.vip(ip), undefined);
  await cluster.stopIpamd();
});

test('an address of a CVM node is reserved once it left its ENI, for the Pod that moves to a super node', async (t) => {
  const { cluster, reservedIps, run, remove } = await sceneOf();
  const ip = await run('a');
  t.deepEqual(reservedIps(), []);
  await remove();
  t.deepEqual(reservedIps(), []);
  t.is(await run('eklet-1'), ip);
  t.deepEqual(reservedIps(), [ip]);
  await cluster.stopIpamd();
});

test('--reserve-kept-addresses: an address without a Pod is on no ENI, and no other resource gets it', async (t) => {
  const { cluster, eklet, state, reservedIps, run, remove } = await sceneOf(['--reserve-kept-addresses']);
  const ip = await run('a');
  t.deepEqual(reservedIps(), []);
  await remove();
  await eklet.until(
    () => reservedIps().includes(ip),
    () => `${ip} is not reserved`,
  );
  t.is(state.holderOf(ip), undefined);
  // Longer than an audit: the cloud's answer that the address is in use is no conflict.
  await eklet.pass(660_000);
  t.is(cluster.why('web-0').split(':')[0], 'AddressRetained');
  t.false(cluster.events().some((event) => event.includes('AddressTaken')));
  t.is(cluster.vip(ip)?.['status'] && JSON.stringify(cluster.vip(ip)?.['status']).includes('AddressTaken'), false);
  t.throws(() => cluster.takeIp(ip, 'subnet-pods0001'), { message: /in use/ });
  t.is(await run('b'), ip);
  t.deepEqual(reservedIps(), [ip]);
  await remove();
  await cluster.deleteClaim('web-0');
  await eklet.until(
    () => cluster.claim('web-0') === undefined,
    () => cluster.why('web-0'),
  );
  t.deepEqual(reservedIps(), []);
  await cluster.stopIpamd();
});

test('a Pod of a super node: its claim says why it waits, and no predecessor of the Pod has the address', async (t) => {
  const { cluster, eklet, state, reservedIps, publishedOf, run, remove } = await sceneOf();
  state.reservedIpQuota = 0;
  const uid = await cluster.createPod('web-0', 'eklet-1', {
    [POD_ANNOTATION.vpcIpAllocation]: JSON.stringify({ ip: '10.1.0.77', uid: 'of-another' }),
  });
  await eklet.until(
    () => cluster.why('web-0').includes('LimitExceeded'),
    () => cluster.why('web-0'),
  );
  t.regex(cluster.why('web-0'), /^AddressAwaited: .*super node eklet-1.*RequestId=/);
  t.is(publishedOf('web-0'), 'False AddressAwaited');
  const { annotations } = cluster.scene.server.objects('pods')[0]?.metadata ?? {};
  t.false(isRecord(annotations) && POD_ANNOTATION.vpcIpAllocation in annotations);
  // One try in a minute: a refusal does not become a loop of calls and writes.
  const calls = (): number =>
    cluster.scene.host.seen.filter(({ action }) => action === 'CreateReserveIpAddresses').length;
  const before = calls();
  await eklet.pass(120_000);
  t.true(calls() - before <= 3, `${calls() - before} calls`);
  state.reservedIpQuota = 100;
  await eklet.until(
    () => eklet.ipOf(uid) !== undefined,
    () => cluster.why('web-0'),
  );
  const ip = eklet.ipOf(uid) ?? '';
  t.deepEqual(reservedIps(), [ip]);
  await remove();
  t.is(await run('eklet-2'), ip);
  await cluster.stopIpamd();
});

test('a Pod of a super node whose claim lost its record by force adopts its reservation', async (t) => {
  const { cluster, eklet, reservedIps, run } = await sceneOf();
  const ip = await run('eklet-1');
  const body = { metadata: { finalizers: null } };
  const ref = { namespace: 'default', name: 'web-0' };
  await cluster.run(cluster.scene.kube.patch(VPC_IP_CLAIMS, ref, { kind: 'merge', body }));
  await cluster.run(cluster.scene.kube.delete(VPC_IP_CLAIMS, ref));
  await eklet.until(
    () => cluster.phase('web-0') === 'Bound',
    () => cluster.why('web-0'),
  );
  t.deepEqual(reservedIps(), [ip]);
  t.is([...eklet.running.values()][0]?.ip, ip);
  await eklet.deletePod('web-0');
  await cluster.deleteClaim('web-0');
  await eklet.until(
    () => cluster.claim('web-0') === undefined,
    () => cluster.why('web-0'),
  );
  t.deepEqual(reservedIps(), []);
  await cluster.stopIpamd();
});

test("a Pod of a super node gets no address of the machines' subnets, by whatever it names", async (t) => {
  const { cluster, eklet, reservedIps } = await sceneOf();
  const named: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'web-subnet': { [POD_ANNOTATION.nominatedSubnets]: 'subnet-node0001' },
    'web-ip': { [POD_ANNOTATION.nominatedVpcIp]: '10.0.0.77' },
    'web-both': { [POD_ANNOTATION.nominatedSubnets]: 'subnet-node0001,subnet-pods0001' },
  };
  for (const [name, annotations] of Object.entries(named)) await cluster.createPod(name, 'eklet-1', annotations);
  await eklet.pass(120_000);
  t.is(reservedIps().length, 1, reservedIps().join(' '));
  t.regex(reservedIps().join(), /^10\.1\./);
  t.regex(cluster.why('web-subnet'), /^AddressAwaited.*no subnet of the ConfigMap/);
  t.regex(
    cluster.why('web-ip'),
    /^AddressAwaited.*10\.0\.0\.77 is of subnet-node0001, which is no subnet of the ConfigMap/,
  );
  await cluster.stopIpamd();
});

test('a Pod of a super node that names a network of ENIs and keeps nothing is told that it gets no address', async (t) => {
  const { cluster, eklet } = await sceneOf();
  for (const [name, node, more] of [
    ['kept', 'eklet-1', {}],
    ['route', 'eklet-1', { [POD_ANNOTATION.deletePolicy]: 'Immediate' }],
    ['direct', 'eklet-2', { [POD_ANNOTATION.networks]: 'tke-direct-eni', [POD_ANNOTATION.deletePolicy]: 'Immediate' }],
    ['bridge', 'eklet-2', { [POD_ANNOTATION.networks]: 'tke-bridge', [POD_ANNOTATION.deletePolicy]: 'Immediate' }],
    ['machine', 'a', { [POD_ANNOTATION.deletePolicy]: 'Immediate' }],
  ] as const)
    await cluster.createPod(name, node, more);
  await eklet.pass(30_000);
  const told = cluster.scene.server
    .objects('events')
    .filter((event) => event['reason'] === 'NoAddressOnSuperNode')
    .map((event) => [(event['involvedObject'] as { readonly name: string }).name, String(event['message'])] as const);
  t.deepEqual(told.map(([name]) => name).sort(), ['direct', 'route']);
  t.regex(told[0]?.[1] ?? '', /^super node eklet-\d has no ENIs: .*vpc-ip-claim-delete-policy: Never/);
  await cluster.stopIpamd();
});

test('a Pod of a super node: an answer that is given again counts for nothing when its reservation is gone', async (t) => {
  const { cluster, eklet, state, reservedIps } = await sceneOf();
  const { faults, seen } = cluster.scene.host;
  const action = 'CreateReserveIpAddresses';
  faults.add({ fault: { kind: 'hang', after: true }, actions: [action], times: 1 });
  const uid = await cluster.createPod('web-0', 'eklet-1');
  await eklet.until(
    () => seen.some((one) => one.action === action) && reservedIps().length > 0,
    () => cluster.why('web-0'),
  );
  for (const one of [...state.reservedIps.reservations.values()]) state.releaseReserved(one);
  await eklet.until(
    () => eklet.ipOf(uid) !== undefined,
    () => cluster.why('web-0'),
  );
  t.deepEqual(reservedIps(), [eklet.ipOf(uid)]);
  await cluster.stopIpamd();
});
