import test from 'ava';
import { SUBNETS_SOURCE_ANNOTATION } from '../../../crd/names.ts';
import { renderSubnetSource } from '../../../crd/subnet-source.ts';
import { readSubnetSupply, SUBNETS_CONFIG_MAP } from '../../../crd/subnet-supply.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { CLOUD, type ShellScene, shellScene } from './shell-scene.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const PODS = 'subnet-pods0001';
const REF = { namespace: 'kube-system', name: SUBNETS_CONFIG_MAP };
/** Time for a description, and for a word of it. */
const ROUND_MS = 36 * SECOND_MS;

async function toldOf(scene: ShellScene) {
  const map = await scene.clock.run(scene.kube.get(CONFIG_MAPS, REF));
  const data = (map?.['data'] ?? {}) as Readonly<Record<string, string>>;
  return { version: map?.metadata.resourceVersion, ids: Object.keys(data), pods: readSubnetSupply(data[PODS]) };
}

function freeOf(scene: ShellScene): number {
  return scene.host.model.state.subnet(PODS).pool.free;
}

async function want(scene: ShellScene, name: string, count: number): Promise<void> {
  const body = { spec: { desiredRouteENIIP: count } };
  await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name }, { kind: 'merge', body }));
}

async function rested() {
  const scene = await shellScene(CLOUD);
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  await scene.join('a');
  await scene.clock.advance(2 * MINUTE_MS);
  return { scene, ipamd };
}

test('startIpamd: tells what the subnets that matter have left, and follows', async (t) => {
  const { scene, ipamd } = await rested();
  const before = await toldOf(scene);
  t.deepEqual(before.ids, [PODS]);
  const { zone, cidr } = CLOUD.subnets[0];
  t.deepEqual(before.pods, { zone, cidr, free: freeOf(scene), total: 4_093, held: 6, common: true });
  await want(scene, 'a', 15);
  await scene.clock.advance(10 * SECOND_MS);
  // Of what was asked for it says within seconds, not when the cloud is asked next.
  const after = await toldOf(scene);
  t.is(after.pods?.held, 16);
  t.is(after.pods?.free, freeOf(scene));
  t.is(after.pods?.free, (before.pods?.free ?? 0) - 10);
  // What others take is seen as soon as the cloud is asked.
  const { pool } = scene.host.model.state.subnet(PODS);
  for (let other = 0; other < 7; other++) pool.take();
  await scene.clock.advance(ROUND_MS);
  t.is((await toldOf(scene)).pods?.free, (after.pods?.free ?? 0) - 7);
  await scene.clock.run(ipamd.close());
});

test('startIpamd: writes nothing of subnets while nothing changes, and again what somebody changed or deleted', async (t) => {
  const { scene, ipamd } = await rested();
  const { version, pods } = await toldOf(scene);
  t.truthy(pods);
  await scene.clock.advance(10 * MINUTE_MS);
  t.is((await toldOf(scene)).version, version);
  const body = { data: { [PODS]: 'nonsense', other: 'x' } };
  await scene.clock.run(scene.kube.patch(CONFIG_MAPS, REF, { kind: 'merge', body }));
  await scene.clock.advance(MINUTE_MS + 6 * SECOND_MS);
  const mended = await toldOf(scene);
  t.deepEqual(mended.pods, pods);
  t.deepEqual(mended.ids, [PODS]);
  await scene.clock.run(scene.kube.delete(CONFIG_MAPS, REF));
  await scene.clock.advance(MINUTE_MS + 6 * SECOND_MS);
  t.deepEqual((await toldOf(scene)).pods, pods);
  await scene.clock.run(ipamd.close());
});

test('startIpamd: writes of subnets at most every five seconds', async (t) => {
  const { scene, ipamd } = await rested();
  let writes = 0;
  const seen = new Set<string | undefined>([(await toldOf(scene)).version]);
  for (let count = 6; count < 46; count++) {
    await want(scene, 'a', count);
    await scene.clock.advance(SECOND_MS);
    const { version } = await toldOf(scene);
    if (!seen.has(version)) writes += 1;
    seen.add(version);
  }
  t.true(writes > 0 && writes <= 10, `${writes} writes in 40 seconds`);
  await scene.clock.run(ipamd.close());
});

/** Less than the time between two writes of numbers: a description by the cloud, and the calls of the API server. */
const AT_ONCE_MS = 1_000;
const CONFIG = { namespace: 'kube-system', name: 'tke-eni-ipamd' };

test('startIpamd: another content of the ConfigMap is told at once, whatever was written before', async (t) => {
  const { scene, ipamd } = await rested();
  const other = CLOUD.subnets[1].subnetId;
  const edit = async (data: Readonly<Record<string, string>>) => {
    await scene.clock.run(scene.kube.patch(CONFIG_MAPS, CONFIG, { kind: 'merge', body: { data } }));
    await scene.clock.advance(AT_ONCE_MS);
    const told = await scene.clock.run(scene.kube.get(CONFIG_MAPS, REF));
    const map = await scene.clock.run(scene.kube.get(CONFIG_MAPS, CONFIG));
    const source = renderSubnetSource(CONFIG, map?.['data']);
    const common = Object.entries(Object(told?.['data'])).filter(([, text]) => readSubnetSupply(text)?.common === true);
    return {
      isCurrent: told?.metadata.annotations?.[SUBNETS_SOURCE_ANNOTATION] === source,
      ids: common.map(([id]) => id),
    };
  };
  for (let round = 0; round < 3; round++) {
    const both = await edit({ TKE_ENI_IPAMD_SUBNET_ID: `${PODS}:${other}` });
    t.deepEqual(both, { isCurrent: true, ids: [other, PODS] });
    const one = await edit({ TKE_ENI_IPAMD_SUBNET_ID: PODS });
    t.deepEqual(one, { isCurrent: true, ids: [PODS] });
  }
  // Subnets that are not there: what was in force stays, and the content was read all the same.
  const wrong = await edit({ TKE_ENI_IPAMD_SUBNET_ID: 'subnet-nobody00' });
  t.deepEqual(wrong, { isCurrent: true, ids: [PODS] });
  await scene.clock.run(ipamd.close());
});
