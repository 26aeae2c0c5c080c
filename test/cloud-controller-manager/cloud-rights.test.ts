import { readFileSync } from 'node:fs';
import test from 'ava';
import { type Action, productOf } from '../../cloud/tencent/requests.ts';
import { BACKEND_READY_GATE } from '../../crd/names.ts';
import { ServicePods } from './services/service-pods.ts';
import { ServiceWorld } from './services/service-world.ts';

const PAGE = readFileSync(new URL('../../docs/cloud-controller-manager.md', import.meta.url), 'utf8');
const DIRECT = 'service.cloud.tencent.com/direct-access';
const PROTECTION = 'service.cloud.tencent.com/deletion-protection';
const DONE_MS = 90_000;

/** The actions of the policy in the section about the rights in the cloud. */
function policyActions(): readonly string[] {
  const [, json = ''] = /^### Rights in the cloud\n[\s\S]*?```json\n([\s\S]*?)```/m.exec(PAGE) ?? [];
  const policy = JSON.parse(json) as { readonly statement: readonly { readonly action: readonly string[] }[] };
  return policy.statement.flatMap(({ action }) => action);
}

test('docs/cloud-controller-manager.md: the CAM policy grants what Services make the controller call, and nothing else', async (t) => {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  await world.join('n1');
  const ranged = { metadata: { annotations: { [PROTECTION]: 'true' } } };
  await world.create('ranged', { ...ranged, spec: { loadBalancerSourceRanges: ['10.0.0.0/8'] } });
  await world.create('direct', { metadata: { annotations: { [DIRECT]: 'true' } } });
  await pods.run('direct', 'a', { node: 'n1' });
  await pods.run('direct', 'b', { node: 'n1', gates: [BACKEND_READY_GATE] });
  await world.advance(DONE_MS);
  await world.patch('ranged', { spec: { sessionAffinity: 'ClientIP' } });
  await pods.end('a');
  await world.advance(3 * DONE_MS);
  await world.patch('ranged', { metadata: { annotations: { [PROTECTION]: 'false' } } });
  await world.patch('direct', { spec: { ports: [{ port: 81 }] } });
  await world.advance(DONE_MS);
  for (const name of ['ranged', 'direct']) await world.delete(name);
  await world.advance(3 * DONE_MS);
  t.deepEqual(world.balancers(), []);
  const called = Object.keys(world.world.scene.host.counts()).map(
    (action) => `${productOf(action as Action)}:${action}`,
  );
  t.deepEqual(policyActions().toSorted(), called.toSorted());
  await world.stop();
});
