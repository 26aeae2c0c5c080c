import anyTest, { type TestFn } from 'ava';
import { needsStaticIp } from '../../../agent/attachment/static-address-source.ts';
import type { NetworkMode } from '../../../agent/pods/network-mode-lookup.ts';
import type { PodIdentity } from '../../../agent/pool/lease-static.ts';
import { DIRECT_ENI_RESOURCE, POD_ANNOTATION } from '../../../crd/names.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { PATIENT } from '../use-cases/fixtures.ts';
import { type AgentLife, type ClusterScene, eniOf, openClusterScene } from './cluster-scene.ts';

const test = anyTest as TestFn<{ scene: ClusterScene }>;

test.beforeEach(async (t) => {
  t.context.scene = await openClusterScene();
});
test.afterEach.always((t) => t.context.scene.close());

const NEVER = { [POD_ANNOTATION.deletePolicy]: 'Never' };
const GROUPS = { [POD_ANNOTATION.securityGroups]: 'sg-1' };
const resources = { limits: { [DIRECT_ENI_RESOURCE]: '1' } };

/** Creates a Pod of the node; returns it as an ADD names it. */
async function createPod(scene: ClusterScene, name: string, annotations = {}, container = {}): Promise<PodIdentity> {
  const { metadata } = await scene.clock.run(
    scene.kube.create(PODS, {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'default', name, annotations } },
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i', ...container }] },
    }),
  );
  return { namespace: 'default', name, uid: metadata.uid ?? '' };
}

const isStatic = ({ clock }: ClusterScene, { state }: AgentLife, pod: PodIdentity): Promise<boolean> =>
  clock.run(needsStaticIp({ clock, state }, pod, clock.bootMs() + 20_000, PATIENT));

async function modeOf(
  { clock }: ClusterScene,
  { state }: AgentLife,
  pod: PodIdentity,
): Promise<NetworkMode | 'not known'> {
  const mode = state.networkModeLookup.cached(pod) ?? (await clock.run(state.networkModeLookup.fetch(pod, PATIENT)));
  return 'why' in mode ? 'not known' : mode;
}

test('cluster: an agent that starts while no API server answers treats the Pods of its node as its predecessor did', async (t) => {
  const { scene } = t.context;
  await scene.edit((object) => ({ ...object, spec: { enableStaticIP: true, maxDirectENI: 2 } }));
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', [10, 11])] }));
  const agent = scene.startAgent();
  await scene.pass();
  const pods = {
    plain: await createPod(scene, 'plain'),
    kept: await createPod(scene, 'kept', NEVER),
    whole: await createPod(scene, 'whole', {}, { resources }),
    guarded: await createPod(scene, 'guarded', GROUPS, { resources }),
  };
  await scene.pass(5_000);

  agent.kill();
  scene.api.partition();
  const next = scene.startAgent();
  await scene.pass();
  t.false(await isStatic(scene, next, pods.plain));
  t.true(await isStatic(scene, next, pods.kept));
  t.deepEqual(await modeOf(scene, next, pods.plain), { network: undefined, needsClaim: false });
  t.deepEqual(await modeOf(scene, next, pods.whole), { network: 'direct-eni', needsClaim: false });
  t.deepEqual(await modeOf(scene, next, pods.guarded), { network: 'direct-eni', needsClaim: true });

  const successor = { ...pods.plain, uid: 'another' };
  await t.throwsAsync(isStatic(scene, next, successor), { message: /not known yet whether default\/plain keeps/ });
  t.is(await modeOf(scene, next, successor), 'not known');
  t.is(await modeOf(scene, next, { ...pods.plain, uid: '' }), 'not known', 'a name alone may be that of another Pod');
});

test('cluster: a Pod that the API server does not have is not looked up in the journal, and leaves it', async (t) => {
  const { scene } = t.context;
  await scene.edit((object) => ({ ...object, spec: { enableStaticIP: true } }));
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', [10, 11])] }));
  const agent = scene.startAgent();
  const pod = await createPod(scene, 'plain');
  await scene.pass(5_000);
  t.deepEqual(agent.journal.load().pods, [pod]);
  agent.kill();
  const ref = { namespace: 'default', name: 'plain' };
  const body = { status: { phase: 'Succeeded' } };
  await scene.clock.run(scene.kube.patch(PODS, ref, { kind: 'merge', body, subresource: 'status' }));
  await scene.clock.run(scene.kube.delete(PODS, ref));
  t.deepEqual(scene.api.objects('pods'), []);
  const next = scene.startAgent();
  await t.throwsAsync(isStatic(scene, next, pod), { message: /not known yet/ });
  await scene.pass(15_000);
  t.deepEqual(next.journal.load().pods ?? [], []);
});
