import anyTest, { type TestFn } from 'ava';
import type { CniFailureError } from '../../../agent/api/cni-failure.ts';
import { needsStaticIp } from '../../../agent/attachment/static-address-source.ts';
import type { ClaimMark } from '../../../agent/journal/supply.ts';
import { POD_ANNOTATION } from '../../../crd/names.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { sampleLease } from '../pool/supply-sample.ts';
import { PATIENT } from '../use-cases/fixtures.ts';
import { type AgentLife, type ClusterScene, eniOf, openClusterScene } from './cluster-scene.ts';

const test = anyTest as TestFn<{ scene: ClusterScene }>;

test.beforeEach(async (t) => {
  t.context.scene = await openClusterScene();
});
test.afterEach.always((t) => t.context.scene.close());

const IP = '10.0.1.10';
const CLAIM = { namespace: 'default', name: 'web-0' };

/** ipamd writes the mark of the first of six addresses. */
function mark(scene: ClusterScene, claim: ClaimMark): Promise<void> {
  const eni = eniOf('a', [10, 11, 12, 13, 14, 15]);
  const [first, ...rest] = eni.addresses;
  if (first === undefined) throw new Error('there are six');
  return scene.supply((status) => ({
    ...status,
    eniInfos: [{ ...eni, addresses: [{ ...first, claim }, ...rest] }],
    staticRouteENIIPs: 1,
  }));
}

const leaseKept = ({ state }: AgentLife, uid: string) =>
  state.pool.leaseStatic({ key: `${uid}/eth0`, pod: { ...CLAIM, uid }, families: [4] });

test('needsStaticIp: takes the word of the Pod, of a mark, of the API server, in this order', async (t) => {
  const { scene } = t.context;
  await scene.edit((object) => ({ ...object, spec: { enableStaticIP: true } }));
  const agent = scene.startAgent();
  await mark(scene, { ...CLAIM, uid: 'u1' });
  const ask = (pod: { namespace: string; name: string; uid: string }) =>
    scene.clock.run(
      needsStaticIp({ clock: scene.clock, state: agent.state }, pod, scene.clock.bootMs() + 10_000, PATIENT),
    );
  const create = async (name: string, annotations: Record<string, string>, nodeName: string): Promise<string> => {
    const pod = {
      metadata: { namespace: 'default', name, annotations },
      spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
    };
    const made = await scene.clock.run(scene.kube.create(PODS, { apiVersion: 'v1', kind: 'Pod', ...pod }));
    await scene.pass(100);
    return made.metadata.uid ?? '';
  };
  t.true(await ask({ ...CLAIM, uid: 'u1' }), 'the mark has its uid');
  t.true(await ask({ ...CLAIM, uid: 'u2' }), 'nobody knows it, and its name has a mark');
  const never = { [POD_ANNOTATION.deletePolicy]: 'Never' };
  t.true(await ask({ namespace: 'default', name: 'db-0', uid: await create('db-0', never, 'n1') }), 'known here');
  t.false(await ask({ ...CLAIM, uid: await create('web-0', {}, 'n1') }), 'its own word goes before a mark of its name');
  // Pods that the watch of this node does not bring.
  t.true(await ask({ namespace: 'default', name: 'far-0', uid: await create('far-0', never, 'n2') }));
  t.false(await ask({ namespace: 'default', name: 'far-1', uid: await create('far-1', {}, 'n2') }));

  const another = await t.throwsAsync(ask({ namespace: 'default', name: 'far-0', uid: 'another' }));
  t.like(another, { code: 11, message: 'it is not known yet whether default/far-0 keeps its address' });
  scene.api.api.faults.add({ userAgent: 'agent', verbs: ['get'], action: { kind: 'drop-before' } });
  const unheard = await t.throwsAsync(ask({ namespace: 'default', name: 'nobody', uid: 'u' }));
  t.like(unheard, { code: 11 });
  t.regex((unheard as CniFailureError).details, /the API server was asked for it: /);
  t.true(await ask({ ...CLAIM, uid: 'u1' }), 'a mark needs no API server');
});

test('cluster: tells once when a kept address was taken over, and goes by its journal', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await mark(scene, { ...CLAIM, uid: 'u1' });
  const result = leaseKept(agent, 'u1');
  t.is(result.kind, 'leased');
  const lease = sampleLease('u1', 'eni-a', [IP], { podUid: 'u1', podNamespace: 'default', podName: 'web-0' });
  agent.journal.putLease(lease);
  agent.state.leases.set('u1/eth0', lease);
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', [11, 12])] }));
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', [11, 12, 13])] }));
  const events = agent.told.filter((text) => text.startsWith('AddressTakenOver'));
  t.is(events.length, 1, agent.told.join('\n'));
  t.regex(events[0] ?? '', /10\.0\.1\.10 is no longer on this node, but the sandbox u1\/eth0 of default\/web-0 has it/);
  agent.kill();
  const next = scene.startAgent();
  t.deepEqual(next.state.supply?.takenOver, [{ ip: IP, leaseKey: 'u1/eth0' }]);
  await scene.pass();
  t.deepEqual(next.told, []);
});
