import test from 'ava';
import { auditNode, type NodeScene, openNodeScene, supplyOf } from '../support/node-scene.ts';

const LEADER = 'ipamd';

/** Nine addresses are offered, taken back and given to Pods; then an etcd of before is restored, the offers in it. */
async function restoreOffers(scene: NodeScene): Promise<void> {
  scene.want(5);
  await scene.pass(5_000);
  expectOffers(scene, 9);
  const old = scene.api.api.store.snapshot();
  scene.want(14);
  const all = scene.nec()?.status?.eniInfos?.flatMap((eni) => eni.addresses ?? []) ?? [];
  for (const { ip } of all) scene.inUse.add(ip);
  await scene.pass(5_000);
  expectOffers(scene, 0);
  scene.hasAgent(false);
  scene.api.restore(old);
}

function expectOffers(scene: NodeScene, count: number): void {
  const offered = scene.nec()?.spec?.releasableIPs?.length ?? 0;
  if (offered !== count) throw new Error(`the scene is wrong: ${offered} offers, not ${count}`);
}

/** Addresses of Pods that are not the node's any more, or are on their way out. */
function lost(scene: NodeScene): readonly string[] {
  const addresses = scene.nec()?.status?.eniInfos?.flatMap((eni) => eni.addresses ?? []) ?? [];
  const serving = new Set(addresses.filter(({ state }) => state === 'Assigned').map(({ ip }) => ip));
  return [...scene.inUse].filter((ip) => !serving.has(ip));
}

async function served(): Promise<NodeScene> {
  const scene = await openNodeScene();
  scene.want(14);
  return scene;
}

test('reconcileNode: a new leader takes no address by an offer that a restored etcd brought back', async (t) => {
  const scene = await served();
  const life = scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 14, 60_000));
  life.crash();
  await restoreOffers(scene);
  scene.lead();
  await scene.pass(300_000);
  t.deepEqual(lost(scene), []);
  scene.hasAgent(true);
  await scene.pass(120_000);
  t.deepEqual(scene.violations, []);
  t.deepEqual(lost(scene), []);
  t.is(supplyOf(scene), 14);
  t.deepEqual(auditNode(scene), []);
});

test('reconcileNode: a leader that lives through the restore takes none either', async (t) => {
  const scene = await served();
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 14, 60_000));
  await scene.pass(60_000);
  const cut = scene.api.partition(LEADER);
  await restoreOffers(scene);
  cut.heal();
  await scene.pass(300_000);
  t.deepEqual(lost(scene), []);
  scene.hasAgent(true);
  await scene.pass(120_000);
  t.deepEqual(scene.violations, []);
  t.deepEqual(lost(scene), []);
  t.is(supplyOf(scene), 14);
});

test('reconcileNode: honours offers of a listed object once the agent has answered', async (t) => {
  const scene = await served();
  const life = scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 14, 60_000));
  life.crash();
  scene.want(5);
  await scene.pass(5_000);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 120_000));
  t.deepEqual(scene.violations, []);
});
