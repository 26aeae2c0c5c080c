import test from 'ava';
import { reservationName, reservationTags } from '../../../../ipamd/guests/static/reservation-identity.ts';
import { VPC_IP_CLAIMS } from '../../../../kube/resource-types.ts';
import { isRecord } from '../../../../runtime/decode.ts';
import { StaticCluster } from './static-cluster.ts';
import { VirtualKubelet } from './super-nodes.ts';

const FOREIGN_IP = '10.1.7.7';
const OTHERS_IP = '10.1.8.8';
const CLUSTER_ID = 'cls-shell001';
const REF = { namespace: 'default', name: 'web-0' };

/** A Pod on a super node beside a reservation of other people and one of another claim of the cluster. */
async function sceneOf() {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  const eklet = new VirtualKubelet(cluster);
  await eklet.join('eklet-1');
  const { state } = cluster.scene.host.model;
  const reserve = (ip: string, name: string, tags: Readonly<Record<string, string>>) => {
    state.subnet('subnet-pods0001').pool.takeExact(ip);
    const spec = { vpcId: state.spec.vpcId, subnetId: 'subnet-pods0001', name, tags: { ...tags }, description: '' };
    return state.reservedIps.add({ ...spec, reservationId: state.nextId('rsvip'), ip, createdAtMs: state.nowMs });
  };
  const foreign = reserve(FOREIGN_IP, 'of-other-people', {});
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'eklet-1');
  await eklet.until(
    () => eklet.ipOf(uid) !== undefined && cluster.phase('web-0') === 'Bound',
    () => cluster.why('web-0'),
  );
  const recordOf = (): Readonly<Record<string, unknown>> | undefined => {
    const status = cluster.claim('web-0')?.['status'];
    const record = isRecord(status) ? status['reservation'] : undefined;
    return isRecord(record) ? record : undefined;
  };
  const edit = async (reservation: object | null): Promise<void> => {
    const body = { status: { reservation } };
    await cluster.run(cluster.scene.kube.patch(VPC_IP_CLAIMS, REF, { kind: 'merge', body }));
  };
  const reservedIps = (): readonly string[] => [...state.reservedIps.reservations.values()].map(({ ip }) => ip).sort();
  const end = async (): Promise<void> => {
    await eklet.deletePod('web-0');
    await cluster.deleteClaim('web-0');
    await eklet.until(
      () => cluster.claim('web-0') === undefined,
      () => cluster.why('web-0'),
    );
    await cluster.stopIpamd();
  };
  return { cluster, eklet, uid, ip: eklet.ipOf(uid) ?? '', foreign, reserve, recordOf, edit, reservedIps, end };
}

const EDITS = {
  'the id of a foreign reservation': { id: 'FOREIGN' },
  'an id that nobody has': { id: 'rsvip-invented' },
  'no id': { id: null },
  'the address of a foreign reservation': { ip: FOREIGN_IP },
  'address and id of a foreign reservation': { ip: FOREIGN_IP, id: 'FOREIGN' },
  'no address': { ip: null },
  'another VPC': { vpcID: 'vpc-invented' },
  'another VPC, recorded only': { vpcID: 'vpc-invented', state: 'Recorded' },
  'another VPC and id': { vpcID: 'vpc-invented', id: 'rsvip-invented' },
  'another subnet': { subnetID: 'subnet-pods0002' },
  'another token': { clientToken: 'invented' },
  'a call that is to be made': { state: 'Recorded' },
} as const;

for (const [what, patch] of Object.entries(EDITS)) {
  test(`status.reservation of a claim has ${what}: the Pod has its address on, and its own reservation alone is released`, async (t) => {
    const { cluster, eklet, uid, ip, foreign, edit, reservedIps, end } = await sceneOf();
    t.deepEqual(reservedIps(), [FOREIGN_IP, ip].sort());
    await edit('id' in patch && patch.id === 'FOREIGN' ? { ...patch, id: foreign.reservationId } : patch);
    await eklet.pass(30_000);
    t.is(eklet.ipOf(uid), ip);
    t.deepEqual(reservedIps(), [FOREIGN_IP, ip].sort());
    await end();
    t.deepEqual(reservedIps(), [FOREIGN_IP]);
    const texts = cluster.events().join('\n');
    if ('vpcID' in patch) t.regex(texts, /ObjectMended status\.reservation named VPC vpc-invented/);
    const isTold = 'id' in patch && patch.id !== null && !('ip' in patch);
    t.is(/ReservationForeign .*is released instead/.test(texts), isTold, texts);
  });
}

test('status.reservation of a claim is left out: what is reserved by its name is taken up', async (t) => {
  const { eklet, uid, ip, recordOf, edit, reservedIps, end } = await sceneOf();
  const before = recordOf();
  await edit(null);
  await eklet.pass(30_000);
  t.is(eklet.ipOf(uid), ip);
  t.is(recordOf()?.['id'], before?.['id']);
  await end();
  t.deepEqual(reservedIps(), [FOREIGN_IP]);
});

test('status.reservation of a claim names an address that is not reserved for it: corrected, with an event on the claim', async (t) => {
  const { cluster, eklet, ip, foreign, recordOf, edit, end } = await sceneOf();
  const before = recordOf();
  await edit({ ip: FOREIGN_IP, id: foreign.reservationId });
  await eklet.pass(5_000);
  t.deepEqual(recordOf(), before);
  const text = `ObjectMended status.reservation named ${FOREIGN_IP}; ${ip} (${String(before?.['id'])}) is reserved for this claim`;
  t.true(cluster.events().includes(text), cluster.events().join('\n'));
  await end();
});

test('status.reservation of a claim: a reservation of another claim, or one whose tags were changed, is left as it is', async (t) => {
  const { cluster, eklet, foreign, ip, reserve, edit, reservedIps, end } = await sceneOf();
  const other = reserve(OTHERS_IP, reservationName(CLUSTER_ID, 'default/web-1'), {
    ...reservationTags(CLUSTER_ID, 'default/web-1'),
  });
  await edit({ id: other.reservationId });
  const { reservations } = cluster.scene.host.model.state.reservedIps;
  const own = [...reservations.values()].find((one) => one.ip === ip);
  if (own === undefined) return t.fail('nothing is reserved');
  reservations.set(own.reservationId, { ...own, tags: {} });
  await eklet.pass(5_000);
  await edit({ id: own.reservationId });
  await end();
  t.deepEqual(reservedIps(), [FOREIGN_IP, OTHERS_IP, ip].sort());
  t.true(reservations.has(foreign.reservationId));
  t.regex(cluster.events().join('\n'), new RegExp(`ReservationForeign .*${own.reservationId}.*nothing is released`));
});
