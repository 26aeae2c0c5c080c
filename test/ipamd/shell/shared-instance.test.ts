import test from 'ava';
import { NODE_ENI_CONFIGS, NODES } from '../../../kube/resource-types.ts';
import { recordOf, recordsOf } from '../../../runtime/json.ts';
import { nodeOf, type ShellScene, shellScene } from './shell-scene.ts';

function ready(scene: ShellScene, name: string): string {
  const conditions = recordsOf(recordOf(scene.nec(name)?.['status'])['conditions']);
  const { status, reason } = conditions.find(({ type }) => type === 'Ready') ?? {};
  return `${String(status)} ${String(reason)}`;
}

function enisOf(scene: ShellScene, name: string): readonly string[] {
  return recordsOf(recordOf(scene.nec(name)?.['status'])['eniInfos']).map(({ eniID }) => String(eniID));
}

const made = ({ host }: ShellScene): readonly string[] =>
  [...host.model.state.enis.values()].filter((eni) => eni.tags['tke-created-eni'] === 'true').map(({ eniId }) => eniId);

const sent = ({ host }: ShellScene): number => host.seen.filter(({ action }) => !action.startsWith('Describe')).length;

/** Nodes `one` and `two` of instance `ins-shellone`, of which `one` has it; `write` makes or changes the object of `two`. */
async function twoOfOne(write: (scene: ShellScene) => Promise<unknown>) {
  const scene = await shellScene();
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  await scene.join('one');
  await scene.until(() => ready(scene, 'one') === 'True SupplyMet');
  await scene.clock.run(write(scene));
  return { scene, ipamd };
}

const INVOLVED = (scene: ShellScene, name: string): readonly string[] =>
  scene.server
    .objects('events')
    .filter((event) => recordOf(event['involvedObject'])['name'] === name)
    .map((event) => `${String(event['reason'])} ${String(event['message'])}`);

test('an object that somebody makes for a second Node of an instance gets nothing, and goes again', async (t) => {
  const { scene, ipamd } = await twoOfOne(async ({ kube }) => {
    const object = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig' };
    await kube.create(NODE_ENI_CONFIGS, { ...object, metadata: { name: 'two' }, spec: { desiredRouteENIIP: 5 } });
    await kube.create(NODES, nodeOf('two', 'ins-shellone'));
  });
  const before = sent(scene);
  await scene.until(() => scene.nec('two') === undefined);
  await scene.clock.advance(300_000);
  t.is(sent(scene), before);
  t.deepEqual(made(scene), enisOf(scene, 'one'));
  t.true(INVOLVED(scene, 'two').some((text) => text.startsWith('InstanceTaken instance ins-shellone is Node one')));
  await scene.clock.run(ipamd.close());
});

test('a node that comes to name the instance of another keeps what it has, gets nothing, and says why', async (t) => {
  const { scene, ipamd } = await twoOfOne(async () => undefined);
  await scene.join('two');
  await scene.until(() => ready(scene, 'two') === 'True SupplyMet');
  const [one, two] = [enisOf(scene, 'one'), enisOf(scene, 'two')];
  const before = sent(scene);
  const body = {
    metadata: { labels: { 'cloud.tencent.com/node-instance-id': 'ins-shellone' } },
    spec: { providerID: null },
  };
  await scene.clock.run(scene.kube.patch(NODES, { name: 'two' }, { kind: 'merge', body }));
  await scene.until(() => ready(scene, 'two') === 'False InstanceTaken');
  await scene.clock.advance(1_200_000);
  t.is(sent(scene), before);
  t.deepEqual([enisOf(scene, 'one'), enisOf(scene, 'two')], [one, two]);
  t.is(ready(scene, 'one'), 'True SupplyMet');
  // Put right, it is served again.
  const right = { metadata: { labels: { 'cloud.tencent.com/node-instance-id': 'ins-shelltwo' } } };
  await scene.clock.run(scene.kube.patch(NODES, { name: 'two' }, { kind: 'merge', body: right }));
  await scene.until(() => ready(scene, 'two') === 'True SupplyMet');
  t.deepEqual(enisOf(scene, 'two'), two);
  await scene.clock.run(ipamd.close());
});
