import test from 'ava';
import { NODE_ANNOTATION } from '../../../crd/names.ts';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { RunningIpamd } from '../../../ipamd/ipamd.ts';
import { NODE_ENI_CONFIGS, NODES, PODS } from '../../../kube/resource-types.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { nodeOf, type ShellScene, shellScene } from './shell-scene.ts';

const DISABLED = { metadata: { annotations: { [NODE_ANNOTATION.disableEni]: 'true' } } };

function statusOf(scene: ShellScene): NodeEniConfigStatus {
  // Checked against its schema by the server.
  return (scene.nec('n1')?.['status'] ?? {}) as NodeEniConfigStatus;
}

function conditionOf(scene: ShellScene): string {
  const ready = statusOf(scene).conditions?.find(({ type }) => type === 'Ready');
  return `${ready?.status} ${ready?.reason}: ${ready?.message ?? ''}`;
}

function assignedOf(scene: ShellScene) {
  const enis = (statusOf(scene).eniInfos ?? []).filter(({ state }) => state === 'Attached');
  return enis.flatMap((eni) => eni.addresses ?? []).filter(({ state }) => state === 'Assigned');
}

/** ENIs that ipamd made with their addresses for Pods, as the cloud has them. */
function cloudOf({ host }: ShellScene): readonly string[] {
  const ours = [...host.model.state.enis.values()].filter((eni) => eni.tags['tke-created-eni'] === 'true');
  return ours
    .map((eni) => {
      const ips = [...eni.ips.values()].filter(({ isPrimary }) => !isPrimary).map(({ ip }) => ip);
      return `${eni.eniId} ${eni.attachment?.instanceId}: ${ips.sort().join(' ')}`;
    })
    .sort();
}

/** The same as the object has it. */
function objectOf(scene: ShellScene): readonly string[] {
  return (statusOf(scene).eniInfos ?? [])
    .map(
      ({ eniID, addresses = [] }) =>
        `${eniID} ins-shelln1: ${addresses
          .map(({ ip }) => ip)
          .sort()
          .join(' ')}`,
    )
    .sort();
}

function events({ server }: ShellScene): readonly string[] {
  return server.objects('events').map((event) => `${event['reason']} ${event['message']}`);
}

async function patch(scene: ShellScene, type: typeof NODES, name: string, body: object): Promise<void> {
  await scene.clock.run(scene.kube.patch(type, { name }, { kind: 'merge', body }));
}

/** Answers as an agent does: it has seen the supply, wants so much, and offers what no Pod uses. */
async function answer(scene: ShellScene, desiredRouteENIIP: number, inUse: readonly string[] = []): Promise<void> {
  const offered = desiredRouteENIIP === 0 ? assignedOf(scene).filter(({ ip }) => !inUse.includes(ip)) : [];
  const releasableIPs = offered.map(({ ip, assignmentID }) => ({ ip, assignmentID }));
  const observedSupplyEpoch = statusOf(scene).supplyEpoch ?? 0;
  await patch(scene, NODE_ENI_CONFIGS, 'n1', { spec: { desiredRouteENIIP, observedSupplyEpoch, releasableIPs } });
}

async function runPod({ clock, kube }: ShellScene, name: string, ip: string): Promise<void> {
  const metadata = { name, namespace: 'default' };
  const spec = { nodeName: 'n1', containers: [{ name: 'main', image: 'none' }] };
  await clock.run(kube.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec }));
  const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
  await clock.run(kube.patch(PODS, metadata, { kind: 'merge', body, subresource: 'status' }));
}

/** The Pod ends; its object stays for a while. */
async function endPod({ clock, kube }: ShellScene): Promise<void> {
  const body = { status: { phase: 'Failed' } };
  await clock.run(
    kube.patch(PODS, { namespace: 'default', name: 'web' }, { kind: 'merge', body, subresource: 'status' }),
  );
  await clock.advance(500);
}

async function deleteNec({ clock, kube }: ShellScene): Promise<void> {
  await clock.run(kube.delete(NODE_ENI_CONFIGS, { name: 'n1' }));
}

/** A node that serves, with one Pod. */
async function openScene(): Promise<{ scene: ShellScene; ipamd: RunningIpamd; ip: string }> {
  const scene = await shellScene();
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  await scene.join('n1');
  await scene.until(() => assignedOf(scene).length >= 5);
  await answer(scene, 5);
  const ip = assignedOf(scene)[0]?.ip ?? '';
  await runPod(scene, 'web', ip);
  await scene.clock.advance(100_000);
  return { scene, ipamd, ip };
}

test('NodeENIConfig of a live node is deleted: it is made again from the cloud at once, and nothing is given back', async (t) => {
  const { scene, ipamd, ip } = await openScene();
  const { uid } = scene.nec('n1')?.metadata ?? {};
  const [cloud, epoch] = [cloudOf(scene), statusOf(scene).supplyEpoch ?? 0];
  const ids = new Set(assignedOf(scene).map(({ assignmentID }) => assignmentID));
  scene.host.forget();
  await deleteNec(scene);
  const deletedMs = scene.clock.monotonicMs();
  await scene.until(() => scene.nec('n1')?.metadata.uid !== uid && assignedOf(scene).length >= 5);
  t.log(`serves after ${scene.clock.monotonicMs() - deletedMs} ms`);
  t.true(scene.clock.monotonicMs() - deletedMs < 10_000);
  t.true(assignedOf(scene).some((one) => one.ip === ip));
  t.true((statusOf(scene).supplyEpoch ?? 0) > epoch, 'the agent believes it');
  t.deepEqual(
    assignedOf(scene).filter(({ assignmentID }) => ids.has(assignmentID)),
    [],
    'no earlier offer counts',
  );
  await scene.clock.advance(400_000);
  t.deepEqual(cloudOf(scene), cloud);
  t.deepEqual(objectOf(scene), cloud);
  t.deepEqual(
    scene.host.seen.map(({ action }) => action).filter((action) => !action.startsWith('Describe')),
    [],
  );
  t.true(events(scene).some((line) => /^DeletionRequested .*made again.*disable-node-eni=true/.test(line)));
  await answer(scene, 30);
  await scene.until(() => assignedOf(scene).length >= 30);
  await scene.clock.run(ipamd.close());
});

test('NodeENIConfig of a live node is deleted while calls are under way: no ENI is lost or made twice', async (t) => {
  for (let delayMs = 0; delayMs <= 3_000; delayMs += IS_LONG ? 150 : 600) {
    const { scene, ipamd } = await openScene();
    const { uid } = scene.nec('n1')?.metadata ?? {};
    await answer(scene, 30);
    await scene.clock.advance(delayMs);
    await deleteNec(scene);
    await scene.until(() => scene.nec('n1') !== undefined && scene.nec('n1')?.metadata.uid !== uid);
    await answer(scene, 30);
    await scene.until(() => assignedOf(scene).length >= 30 && (statusOf(scene).intents ?? []).length === 0);
    t.deepEqual(objectOf(scene), cloudOf(scene), `after ${delayMs} ms`);
    t.is(cloudOf(scene).length, 2, `after ${delayMs} ms`);
    await scene.clock.run(ipamd.close());
  }
});

test('NodeENIConfig is deleted where ENIs are disabled: it says which Pod holds it, and all is given back when that ends', async (t) => {
  const { scene, ipamd, ip } = await openScene();
  await patch(scene, NODES, 'n1', DISABLED);
  await deleteNec(scene);
  await scene.clock.advance(2_000);
  await answer(scene, 0, [ip]);
  await scene.clock.advance(70_000);
  t.regex(
    conditionOf(scene),
    /^False Draining: .*wait for Pods that use their addresses: default\/web \(10\.1\.\d+\.\d+\)$/,
  );
  t.true(events(scene).some((line) => /^DeletionRequested .*default\/web/.test(line)));
  t.is(cloudOf(scene).length, 1);
  await endPod(scene);
  await scene.clock.advance(2_000);
  t.regex(conditionOf(scene), /wait for the agent of the node to offer eni-/);
  await answer(scene, 0);
  await scene.until(() => scene.nec('n1') === undefined);
  t.deepEqual(cloudOf(scene), []);
  await scene.clock.advance(60_000);
  t.is(scene.nec('n1'), undefined);
  await scene.clock.run(ipamd.close());
});

for (const [what, order] of [
  ['just before', ['annotate', 'delete']],
  ['just after', ['delete', 'annotate']],
] as const) {
  test(`NodeENIConfig is deleted, and ENIs are disabled ${what}: all is given back`, async (t) => {
    for (const gapMs of [0, 5, 20, 60, 200, 600, 1_500]) {
      const { scene, ipamd } = await openScene();
      await endPod(scene);
      for (const step of order) {
        if (step === 'delete') await deleteNec(scene);
        else await patch(scene, NODES, 'n1', DISABLED);
        await scene.clock.advance(gapMs);
      }
      for (let tries = 0; tries < 40 && cloudOf(scene).length > 0; tries++) {
        if (scene.nec('n1') !== undefined) await answer(scene, 0);
        await scene.clock.advance(2_000);
      }
      t.deepEqual(cloudOf(scene), [], `${gapMs} ms`);
      await scene.clock.run(ipamd.close());
    }
  });
}

test('NodeENIConfig is deleted while its Node is away, and the Node registers again: the node goes on at once', async (t) => {
  const { scene, ipamd } = await openScene();
  const { uid } = scene.nec('n1')?.metadata ?? {};
  const cloud = cloudOf(scene);
  await scene.clock.run(scene.kube.delete(NODES, { name: 'n1' }));
  await scene.clock.advance(5_000);
  await deleteNec(scene);
  await scene.clock.advance(5_000);
  await scene.clock.run(scene.kube.create(NODES, nodeOf('n1', 'ins-shelln1')));
  const backMs = scene.clock.monotonicMs();
  await scene.until(() => scene.nec('n1')?.metadata.uid !== uid && assignedOf(scene).length >= 5);
  t.true(scene.clock.monotonicMs() - backMs < 10_000);
  t.true((statusOf(scene).eniInfos ?? []).every(({ draining }) => draining !== true));
  t.deepEqual(cloudOf(scene), cloud);
  await scene.clock.run(ipamd.close());
});
