import test from 'ava';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { API_GROUP, NODE_ANNOTATION } from '../../../crd/names.ts';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, NODE_ENI_CONFIGS, NODES } from '../../../kube/resource-types.ts';
import { type ShellScene, shellScene } from './shell-scene.ts';

const NAMES = ['n1', 'n2'] as const;
const GRACE_MS = 300_000;

function statusOf(scene: ShellScene, name: string): NodeEniConfigStatus {
  // Checked against its schema by the server.
  return (scene.nec(name)?.['status'] ?? {}) as NodeEniConfigStatus;
}

function isReady(scene: ShellScene, name: string): boolean {
  return statusOf(scene, name).conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
}

/** ENIs that ipamd made, with their addresses, as the cloud has them. */
function enisOf({ host }: ShellScene): unknown {
  const ours = [...host.model.state.enis.values()].filter((eni) => eni.tags['tke-created-eni'] === 'true');
  return ours.map((eni) => [eni.eniId, eni.attachment?.instanceId, [...eni.ips.keys()].sort()]).sort();
}

async function deleteDefinitions({ clock, kube }: ShellScene): Promise<void> {
  for (const { plural } of RESOURCE_KINDS)
    await clock.run(kube.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `${plural}.${API_GROUP}` }));
}

function standing({ server }: ShellScene): number {
  const definitions = server.objects('customresourcedefinitions', 'apiextensions.k8s.io');
  return definitions.filter(({ metadata }) => metadata.deletionTimestamp === undefined).length;
}

function reasonsOf({ server }: ShellScene): readonly string[] {
  return server.objects('events').map((event) => String((event as { reason?: string }).reason));
}

test('ipamd: definitions that are deleted are installed again, and no ENI or address is released', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  for (const name of NAMES) await scene.join(name);
  await scene.until(() => NAMES.every((name) => isReady(scene, name)));
  const body = { spec: { desiredRouteENIIP: 5, observedSupplyEpoch: statusOf(scene, 'n1').supplyEpoch } };
  await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name: 'n1' }, { kind: 'merge', body }));
  const before = enisOf(scene);
  const uids = NAMES.map((name) => scene.nec(name)?.metadata.uid);
  await deleteDefinitions(scene);
  const lostMs = scene.clock.monotonicMs();
  await scene.until(() => ipamd.readiness() !== undefined);
  t.regex(ipamd.readiness() ?? '', /definitions of resources are lost: .*nodeeniconfigs\..* is (?:terminating|absent)/);
  t.regex(await scene.clock.run(ipamd.metrics.registry.metrics()), /problem\{kind="DefinitionsMissing",/);
  await scene.until(() => standing(scene) === RESOURCE_KINDS.length);
  const tookMs = scene.clock.monotonicMs() - lostMs;
  t.log(`installed again after ${tookMs / 1_000} s of the clock`);
  t.true(tookMs <= 30_000);
  await scene.until(() => ipamd.readiness() === undefined);
  await scene.until(() => NAMES.every((name) => isReady(scene, name)));
  for (const [index, name] of NAMES.entries()) t.not(scene.nec(name)?.metadata.uid, uids[index]);
  t.deepEqual(enisOf(scene), before);
  // The nodes have what they had, and get more.
  const more = { spec: { desiredRouteENIIP: 12, observedSupplyEpoch: statusOf(scene, 'n1').supplyEpoch } };
  await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name: 'n1' }, { kind: 'merge', body: more }));
  await scene.until(() => (statusOf(scene, 'n1').eniInfos ?? []).flatMap((eni) => eni.addresses ?? []).length >= 12);
  await scene.clock.advance(2 * GRACE_MS);
  t.is(statusOf(scene, 'n2').eniInfos?.length, 1);
  t.true(reasonsOf(scene).includes('DefinitionsLost'));
  t.true(reasonsOf(scene).includes('DefinitionsRestored'));
  await scene.clock.run(ipamd.close());
});

test('ipamd: a NodeENIConfig that a person deletes is drained where ENIs are disabled, as its definition stands', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  await scene.join('n1');
  await scene.until(() => isReady(scene, 'n1'));
  const annotations = { [NODE_ANNOTATION.disableEni]: 'true' };
  await scene.clock.run(
    scene.kube.patch(NODES, { name: 'n1' }, { kind: 'merge', body: { metadata: { annotations } } }),
  );
  await scene.clock.run(scene.kube.delete(NODE_ENI_CONFIGS, { name: 'n1' }));
  await scene.until(() => (statusOf(scene, 'n1').eniInfos ?? []).every((eni) => eni.draining === true));
  t.true((statusOf(scene, 'n1').eniInfos ?? []).length > 0);
  await scene.clock.run(ipamd.close());
});

/** Takes everything out of the store at once: objects and definitions that no finalizer holds. */
function wipe({ server }: ShellScene): void {
  const { store } = server.api;
  for (const { plural } of RESOURCE_KINDS) {
    const key = `${API_GROUP}/${plural}`;
    for (const object of store.list(key)) store.remove(key, object);
  }
  const key = 'apiextensions.k8s.io/customresourcedefinitions';
  for (const definition of store.list(key)) store.remove(key, definition);
}

for (const [how, lose] of [
  ['deleted', deleteDefinitions],
  ['wiped out', async (scene: ShellScene) => wipe(scene)],
] as const) {
  test(`ipamd: whichever of two replicas notices first that definitions are ${how}, no ENI is made or released`, async (t) => {
    const scene = await shellScene();
    const replicas = [await scene.start({ name: 'one' })];
    await scene.until(() => replicas[0]?.isLeading === true);
    // The standby looks at other moments than the leader.
    await scene.clock.advance(8_000);
    replicas.push(await scene.start({ name: 'two' }));
    for (const name of NAMES) await scene.join(name);
    await scene.until(() => NAMES.every((name) => isReady(scene, name)));
    const before = enisOf(scene);
    for (const waitMs of [0, 3_000, 6_000, 9_000, 12_000]) {
      await scene.clock.advance(120_000 + waitMs);
      await lose(scene);
      await scene.until(() => standing(scene) === RESOURCE_KINDS.length && scene.nec('n1') !== undefined);
      await scene.until(() => NAMES.every((name) => isReady(scene, name)));
      await scene.until(() => replicas.every((one) => one.readiness() === undefined));
      t.deepEqual(enisOf(scene), before, `${waitMs}`);
    }
    for (const one of replicas) await scene.clock.run(one.close());
  });
}
