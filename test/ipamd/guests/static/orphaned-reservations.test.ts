import test from 'ava';
import {
  isReservedHere,
  reservationName,
  reservationTags,
} from '../../../../ipamd/guests/static/reservation-identity.ts';
import { VPC_IP_CLAIMS, VPC_IPS } from '../../../../kube/resource-types.ts';
import { StaticCluster } from './static-cluster.ts';
import { VirtualKubelet } from './super-nodes.ts';

const CLUSTER_ID = 'cls-shell001';
const FLAGS = ['--sync-interval=1m', '--orphan-grace=5m'];
const MINUTE_MS = 60_000;

async function sceneOf(flags: readonly string[] = []) {
  const cluster = await StaticCluster.make({ a: 3 }, [...FLAGS, ...flags]);
  const eklet = new VirtualKubelet(cluster);
  await eklet.join('eklet-1');
  await cluster.startIpamd();
  const { host } = cluster.scene;
  const { state } = host.model;
  const reserve = (ip: string, name: string, tags: Readonly<Record<string, string>>) => {
    state.subnet('subnet-pods0001').pool.takeExact(ip);
    const spec = { vpcId: state.spec.vpcId, subnetId: 'subnet-pods0001', name, tags: { ...tags }, description: '' };
    return state.reservedIps.add({ ...spec, reservationId: state.nextId('rsvip'), ip, createdAtMs: state.nowMs });
  };
  const reserveFor = (ip: string, key: string, clusterId = CLUSTER_ID) =>
    reserve(ip, reservationName(clusterId, key), reservationTags(clusterId, key));
  const reservedIps = (): readonly string[] => [...state.reservedIps.reservations.values()].map(({ ip }) => ip).sort();
  const told = (reason: string): readonly string[] => cluster.events().filter((text) => text.startsWith(`${reason} `));
  const events = () => ({ released: told('OrphanReservationReleased'), kept: told('OrphanReservation') });
  return { cluster, eklet, host, state, reserve, reserveFor, reservedIps, events };
}

test('a reservation whose claim lost its finalizer by hand is released after --orphan-grace, with an event', async (t) => {
  const { cluster, eklet, reservedIps, events } = await sceneOf();
  const uid = await cluster.createPod('web-0', 'eklet-1');
  await eklet.until(
    () => eklet.ipOf(uid) !== undefined,
    () => cluster.why('web-0'),
  );
  const ip = eklet.ipOf(uid) ?? '';
  await eklet.pass(10 * MINUTE_MS);
  t.deepEqual(reservedIps(), [ip]);
  await cluster.stopIpamd();
  await eklet.deletePod('web-0');
  const ref = { namespace: 'default', name: 'web-0' };
  await cluster.run(
    cluster.scene.kube.patch(VPC_IP_CLAIMS, ref, { kind: 'merge', body: { metadata: { finalizers: null } } }),
  );
  await cluster.deleteClaim('web-0');
  const kept = { metadata: { finalizers: null } };
  await cluster.run(cluster.scene.kube.patch(VPC_IPS, { name: ip }, { kind: 'merge', body: kept }));
  await cluster.deleteVip(ip);
  await cluster.startIpamd();
  await eklet.pass(5 * MINUTE_MS);
  t.deepEqual(reservedIps(), [ip]);
  await eklet.pass(4 * MINUTE_MS);
  t.deepEqual(reservedIps(), []);
  t.regex(
    events().released.join(),
    new RegExp(`reserved address ${ip.replaceAll('.', '\\.')} .* made for default/web-0,`),
  );
  await cluster.stopIpamd();
});

test('a reservation that was edited out of its claim is recorded again, serves the next Pod and ends with the claim', async (t) => {
  const { cluster, eklet, reservedIps } = await sceneOf();
  let uid = await cluster.createPod('web-0', 'eklet-1');
  await eklet.until(
    () => eklet.ipOf(uid) !== undefined,
    () => cluster.why('web-0'),
  );
  const ip = eklet.ipOf(uid) ?? '';
  await eklet.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained');
  const ref = { namespace: 'default', name: 'web-0' };
  await cluster.run(
    cluster.scene.kube.patch(VPC_IP_CLAIMS, ref, { kind: 'merge', body: { status: { reservation: null } } }),
  );
  await eklet.pass(4 * MINUTE_MS);
  t.true(
    cluster.events().some((text) => text.startsWith(`ObjectMended status.reservation was lost; ${ip} (rsvip-`)),
    cluster.events().join('\n'),
  );
  uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.ipOf(uid) !== undefined, cluster.why('web-0'));
  t.is(cluster.ipOf(uid), ip);
  await cluster.deletePod('web-0');
  await cluster.deleteClaim('web-0');
  await cluster.until(() => cluster.claim('web-0') === undefined);
  t.deepEqual(reservedIps(), []);
  await cluster.stopIpamd();
});

test('a reservation that cannot be recorded again for a fault of the cloud keeps no other from being swept, and is recorded later', async (t) => {
  const { cluster, eklet, host, reserveFor, reservedIps, events } = await sceneOf();
  const uid = await cluster.createPod('web-0', 'eklet-1');
  await eklet.until(
    () => eklet.ipOf(uid) !== undefined,
    () => cluster.why('web-0'),
  );
  const ip = eklet.ipOf(uid) ?? '';
  await eklet.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained');
  const body = { status: { reservation: null } };
  await cluster.run(
    cluster.scene.kube.patch(VPC_IP_CLAIMS, { namespace: 'default', name: 'web-0' }, { kind: 'merge', body }),
  );
  reserveFor('10.1.7.1', 'default/gone-0');
  const remove = host.faults.add({
    fault: { kind: 'error', code: 'InvalidParameterValue' },
    actions: ['DescribeReserveIpAddresses'],
    within: ip,
  });
  await eklet.pass(12 * MINUTE_MS);
  t.deepEqual(reservedIps(), [ip]);
  t.is(events().released.length, 1);
  const isMended = () =>
    cluster.events().some((text) => text.startsWith(`ObjectMended status.reservation was lost; ${ip}`));
  t.false(isMended());
  remove();
  await eklet.pass(2 * MINUTE_MS);
  t.true(isMended(), cluster.events().join('\n'));
  await cluster.stopIpamd();
});

test('reservations of others, of another cluster, of a living claim and of a Pod that waits stay', async (t) => {
  const { cluster, eklet, host, reserve, reserveFor, reservedIps, events } = await sceneOf();
  const uid = await cluster.createPod('web-0', 'eklet-1');
  await eklet.until(
    () => eklet.ipOf(uid) !== undefined,
    () => cluster.why('web-0'),
  );
  reserve('10.1.7.1', 'of-other-people', {});
  reserveFor('10.1.7.2', 'default/gone-0', 'cls-another1');
  reserve('10.1.7.3', 'named-by-hand', reservationTags(CLUSTER_ID, 'default/gone-1'));
  const expected = ['10.1.7.1', '10.1.7.2', '10.1.7.3', eklet.ipOf(uid) ?? ''].sort();
  await eklet.pass(12 * MINUTE_MS);
  t.deepEqual(reservedIps(), expected);
  t.deepEqual(events(), { released: [], kept: [] });
  // A list that changes from page to page, or that fails, proves nothing.
  reserveFor('10.1.7.4', 'default/gone-2');
  const remove = host.faults.add({
    fault: { kind: 'http', status: 502 },
    actions: ['DescribeReserveIpAddresses'],
    probability: 1,
  });
  await eklet.pass(12 * MINUTE_MS);
  t.true(reservedIps().includes('10.1.7.4'));
  remove();
  await eklet.pass(12 * MINUTE_MS);
  t.deepEqual(reservedIps(), expected);
  t.is(events().released.length, 1);
  await cluster.stopIpamd();
});

test('an orphaned reservation is only told with --orphan-dry-run, and while an ENI has its address', async (t) => {
  const dry = await sceneOf(['--orphan-dry-run']);
  dry.reserveFor('10.1.7.1', 'default/gone-0');
  await dry.eklet.pass(12 * MINUTE_MS);
  t.deepEqual(dry.reservedIps(), ['10.1.7.1']);
  t.regex(dry.events().kept.join(), /10\.1\.7\.1 .*belongs to no claim: dry run/);
  await dry.cluster.stopIpamd();

  const bound = await sceneOf();
  const one = bound.reserveFor('10.1.7.1', 'default/gone-0');
  const { state } = bound;
  state.reservedIps.remove(one, state.nowMs);
  state.subnet('subnet-pods0001').pool.give('10.1.7.1');
  const giveBack = bound.cluster.takeIp('10.1.7.1', 'subnet-pods0001');
  state.reservedIps.add(one);
  await bound.eklet.pass(12 * MINUTE_MS);
  t.deepEqual(bound.reservedIps(), ['10.1.7.1']);
  t.regex(bound.events().kept.join(), /10\.1\.7\.1 .*belongs to no claim, and eni-\w+ has the address/);
  giveBack();
  await bound.eklet.pass(12 * MINUTE_MS);
  t.deepEqual(bound.reservedIps(), []);
  await bound.cluster.stopIpamd();
});

test('more than ten orphaned reservations that are most of all are not released', async (t) => {
  const { cluster, eklet, reserveFor, reservedIps, events } = await sceneOf();
  for (let index = 1; index <= 11; index++) reserveFor(`10.1.7.${index}`, `default/gone-${index}`);
  await eklet.pass(12 * MINUTE_MS);
  t.is(reservedIps().length, 11);
  t.regex(events().kept.join(), /11 of the 11 reserved addresses .* none is released/);
  await cluster.stopIpamd();
});

test('without a super node, the flag and a claim with a reservation the cloud is not asked for reservations', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 }, FLAGS);
  await cluster.startIpamd();
  await cluster.createPod('web-0', 'a');
  await cluster.pass(5 * MINUTE_MS);
  t.is(cluster.phase('web-0'), 'Bound');
  t.false(cluster.scene.host.seen.some(({ action }) => action.includes('ReserveIp')));
  await cluster.stopIpamd();
});

test('isReservedHere: of this cluster, with the tags of a claim and the name that goes with them', (t) => {
  const keys = ['shop/db-0', `shop/${'d'.repeat(200)}`];
  for (const key of keys) {
    const one = { name: reservationName(CLUSTER_ID, key), tags: reservationTags(CLUSTER_ID, key) };
    t.true(isReservedHere(one, CLUSTER_ID));
    t.false(isReservedHere(one, 'cls-another1'));
    const ofTke = { 'tke-clusterId': CLUSTER_ID, 'tke-created-ip': 'true' };
    t.false(isReservedHere({ ...one, tags: ofTke }, CLUSTER_ID));
    t.false(isReservedHere({ ...one, tags: { ...ofTke, 'tke-ip-claim': '' } }, CLUSTER_ID));
  }
  t.false(isReservedHere({ name: 'by-hand', tags: reservationTags(CLUSTER_ID, 'shop/db-0') }, CLUSTER_ID));
});
