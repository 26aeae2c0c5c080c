import test from 'ava';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { openClusterScene } from './cluster-scene.ts';

const NODE: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } };
const OTHER: KubeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n2' },
  spec: { podCIDR: '172.20.9.0/26' },
};

test('cluster: the podCIDR of the own Node is taken over, recorded, and kept while there is no Node', async (t) => {
  const scene = await openClusterScene();
  t.teardown(() => scene.close());
  const agent = scene.startAgent();
  await scene.kube.create(NODES, OTHER);
  await scene.kube.create(NODES, NODE);
  await scene.pass();
  t.deepEqual(agent.state.podCidrs, [], 'neither has the node one yet, nor is it that of another node');

  const podCIDR = '172.20.0.0/26';
  await scene.kube.patch(NODES, { name: 'n1' }, { kind: 'merge', body: { spec: { podCIDR, podCIDRs: [podCIDR] } } });
  await scene.pass();
  t.deepEqual(agent.state.podCidrs, [podCIDR]);
  t.is(agent.state.bridgePool.counts().total, 61);
  t.deepEqual(agent.journal.load().podCidrs, [podCIDR]);

  await scene.kube.delete(NODES, { name: 'n1' });
  await scene.pass();
  t.deepEqual(agent.state.podCidrs, [podCIDR], 'it is not known what the next Node will have');
  await scene.kube.create(NODES, { ...NODE, spec: { podCIDR: '172.20.0.64/26' } });
  await scene.pass();
  t.deepEqual(agent.state.podCidrs, ['172.20.0.64/26']);
  t.true(
    agent.told.some((text) => text.includes('PodCIDRChanged')),
    agent.told.join('\n'),
  );
});
