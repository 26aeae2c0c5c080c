import test from 'ava';
import type { StoredNec } from '../support/lead-nodes.ts';
import { auditNode, openNodeScene, supplyOf } from '../support/node-scene.ts';

test('reconcileNode: makes the object again when an older state of it was restored', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  await scene.pass(5_000);
  const old = scene.api.api.store.snapshot();
  scene.want(14);
  t.true(await scene.until(() => supplyOf(scene) === 14, 60_000));
  await scene.pass(5_000);
  const before = scene.nec()?.status?.supplyEpoch ?? 0;
  const idsBefore = new Set(
    scene
      .nec()
      ?.status?.eniInfos?.flatMap((eni) => eni.addresses ?? [])
      .map((one) => one.assignmentID),
  );
  scene.api.restore(old);
  // What the agent has seen outlives the restore in its journal, and it says so.
  await scene.edit((nec) => ({ ...nec, spec: { ...nec.spec, desiredRouteENIIP: 14, observedSupplyEpoch: before } }));
  t.true(await scene.until(() => (scene.nec()?.status?.supplyEpoch ?? 0) > before, 300_000));
  t.true(await scene.until(() => supplyOf(scene) === 14, 60_000));
  await scene.pass(120_000);
  t.deepEqual(auditNode(scene), []);
  const ids =
    scene
      .nec()
      ?.status?.eniInfos?.flatMap((eni) => eni.addresses ?? [])
      .map((one) => one.assignmentID) ?? [];
  t.deepEqual(
    ids.filter((id) => idsBefore.has(id)),
    [],
  );
});

test('reconcileNode: a rebuilt status that another writer was faster than is written within seconds', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  await scene.pass(60_000);
  const seen = (scene.nec()?.status?.supplyEpoch ?? 0) + 3;
  await scene.edit((nec) => ({ ...nec, spec: { ...nec.spec, observedSupplyEpoch: seen } }));
  const conflict = { kind: 'status', code: 409, reason: 'Conflict' } as const;
  scene.api.api.faults.add({ verbs: ['update'], resources: ['nodeeniconfigs'], times: 1, action: conflict });
  t.true(await scene.until(() => (scene.nec()?.status?.supplyEpoch ?? 0) > seen, 20_000));
});

test('reconcileNode: makes the status again when nothing can be read from it', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  const life = scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  await scene.pass(60_000);
  const ips = scene.nec()?.status?.eniInfos?.[0]?.addresses?.map((address) => address.ip) ?? [];
  await scene.edit((nec) => ({
    ...nec,
    // Passes the schema, and puts one address in two places.
    status: {
      ...nec.status,
      eniInfos: nec.status?.eniInfos?.map((eni) => ({ ...eni, primaryIP: eni.addresses?.[0]?.ip, gateway: '1.2.3.4' })),
    },
  }));
  t.true(await scene.until(() => auditNode(scene).length === 0, 300_000));
  t.deepEqual(
    scene
      .nec()
      ?.status?.eniInfos?.[0]?.addresses?.map((address) => address.ip)
      .sort(),
    [...ips].sort(),
  );
  t.true(life.events.some((event) => event.includes('ObjectInvalid')));
});

test('reconcileNode: mends what somebody changed in the cloud, after it was seen twice', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  const life = scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  await scene.pass(60_000);
  const { state } = scene.host.model;
  const [eni] = [...state.enis.values()].filter((one) => !one.isPrimary);
  if (eni === undefined) throw new Error('no ENI');
  const gone = [...eni.ips.values()].find((ip) => !ip.isPrimary);
  if (gone === undefined) throw new Error('no address');
  state.removeIp(eni, gone);
  const found = state.subnet(eni.subnetId).pool.take();
  eni.ips.set(found, { ip: found, isPrimary: false, state: 'AVAILABLE' });
  state.touch(eni);
  life.memory.requestDescribe('node-a', 'test');
  scene.want(6);
  t.true(
    await scene.until(() => scene.nec()?.status?.eniInfos?.[0]?.addresses?.some(({ ip }) => ip === found) ?? false),
  );
  // Until then the object said of an address that was taken away from outside that it serves.
  scene.violations.length = 0;
  t.true(await scene.until(() => auditNode(scene).length === 0 && supplyOf(scene) === 6, 300_000));
  const counts = await countsOf(life);
  t.like(counts, {
    node_describes_total: '3',
    'node_drift_total{kind="address-missing"}': '2',
    'node_drift_total{kind="address-unknown"}': '2',
  });
  t.true(Number(counts['node_writes_total{result="written"}']) > 3);
});

/** Counters of a leader, by name and labels. */
async function countsOf(life: { metricsText(): Promise<string> }): Promise<Readonly<Record<string, string>>> {
  const found = (await life.metricsText()).matchAll(
    /^tke_eni_ipamd_(node_(?:describes|drift|writes)_total\S*) (\d+)/gm,
  );
  return Object.fromEntries([...found].map(([, name, value]) => [name, value]));
}

test('reconcileNode: a repair of one ENI does not make the difference of another one young again', async (t) => {
  const scene = await openNodeScene();
  scene.want(14);
  const life = scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 14, 120_000));
  await scene.pass(60_000);
  const { state } = scene.host.model;
  const [first, second] = [...state.enis.values()].filter((one) => !one.isPrimary);
  if (first === undefined || second === undefined) throw new Error('no two ENIs');
  const takeOne = (eni: typeof first) => {
    const taken = [...eni.ips.values()].find((ip) => !ip.isPrimary);
    if (taken === undefined) throw new Error('no address');
    state.removeIp(eni, taken);
    state.touch(eni);
    life.memory.requestDescribe('node-a', 'test');
    return taken.ip;
  };
  const touch = (value: string) =>
    scene.edit((nec) => ({ ...nec, metadata: { ...nec.metadata, annotations: { touched: value } } }));
  const isListed = (address: string) => JSON.stringify(scene.nec()?.status?.eniInfos).includes(`"${address}"`);
  const one = takeOne(first);
  await touch('one');
  await scene.pass(45_000);
  const other = takeOne(second);
  await touch('other');
  t.true(await scene.until(() => !isListed(one), 30_000), 'the first difference is not repaired');
  t.true(isListed(other));
  t.true(await scene.until(() => !isListed(other), 60_000), 'the second difference is not repaired');
});

/** The object as if its ENIs were on no instance. */
function asDetached(object: StoredNec): unknown {
  const eniInfos = (object.status?.eniInfos ?? []).map(({ deviceIndex: _on, assignmentID: _since, ...eni }) => ({
    ...eni,
    state: 'Detaching',
    addresses: (eni.addresses ?? []).map((address) => ({ ...address, state: 'Releasing' })),
  }));
  return { ...object, status: { ...object.status, eniInfos } };
}

test('reconcileNode: unbinds an ENI that the object says is on no instance, once the cloud refuses to delete it', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  await scene.edit(asDetached);
  t.true(await scene.until(() => auditNode(scene).length === 0 && supplyOf(scene) === 5, 300_000));
});

test('reconcileNode: deletes an ENI as soon as it is detached, though the cloud refused that before', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  const before = scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  const [eniID = ''] = (scene.nec()?.status?.eniInfos ?? []).map((eni) => eni.eniID);
  before.crash();
  await scene.edit(asDetached);
  scene.lead();
  const eni = () => scene.host.model.state.enis.get(eniID);
  t.true(await scene.until(() => eni()?.attachment === undefined, 300_000));
  const deletions = scene.host.seen.filter(({ action }) => action === 'DeleteNetworkInterface');
  t.true(deletions.length > 0, 'the cloud refused no deletion');
  t.true(await scene.until(() => eni() === undefined, 10_000));
});

/** What a person writes who empties the list of ENIs, counts included. */
const EMPTIED = { eniInfos: [], routeENIs: 0, routeENIIPs: 0 };

test('reconcileNode: describes the cloud at once when a full instance contradicts a status that was emptied while nobody led', async (t) => {
  const scene = await openNodeScene(undefined, 1);
  scene.want(4);
  const before = scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 4, 60_000));
  before.crash();
  await scene.edit((object) => ({ ...object, status: { ...object.status, ...EMPTIED } }));
  await scene.pass(60_000);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 4, 120_000));
  t.true(await scene.until(() => auditNode(scene).length === 0, 120_000), auditNode(scene).join('\n'));
});

test('reconcileNode: takes ENIs back at once that a live Pod uses and a status lacks', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  const before = scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  const [ip = ''] = (scene.nec()?.status?.eniInfos?.[0]?.addresses ?? []).map((address) => address.ip);
  scene.inUse.add(ip);
  before.crash();
  await scene.edit((object) => ({ ...object, status: { ...object.status, ...EMPTIED } }));
  scene.facts.parts = { inUse: new Set([ip]) };
  scene.host.forget();
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 3_000));
  t.deepEqual(auditNode(scene), []);
  t.deepEqual(
    scene.host.seen.filter(({ action }) => !action.startsWith('Describe')),
    [],
  );
});
