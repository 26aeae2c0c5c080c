import test from 'ava';
import { fenceWrites } from '../../kube/election/fence-writes.ts';
import { NODES } from '../../kube/resource-types.ts';
import { startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const NODE = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } };

test('fenceWrites: refuses each change while the lease may be over, and reads', async (t) => {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock });
  let isHeld = true;
  const client = fenceWrites(server.client(), { isHeld: () => isHeld });
  const patch = { kind: 'merge', body: { metadata: { labels: { mine: 'yes' } } } } as const;
  await clock.run(client.create(NODES, NODE));
  isHeld = false;
  const changes: readonly (() => Promise<unknown>)[] = [
    () => client.create(NODES, { ...NODE, metadata: { name: 'n2' } }),
    () => client.update(NODES, { ...NODE, metadata: { name: 'n1', labels: { mine: 'yes' } } }),
    () => client.patch(NODES, { name: 'n1' }, patch),
    () => client.delete(NODES, { name: 'n1' }),
  ];
  for (const change of changes) await t.throwsAsync(clock.run(change()), { message: /the lease may be over/ });
  t.like(await clock.run(client.get(NODES, { name: 'n1' })), { metadata: { name: 'n1' } });
  const [left, ...others] = server.objects('nodes');
  t.deepEqual([left?.metadata.name, left?.metadata.labels, others], ['n1', undefined, []]);
  isHeld = true;
  t.like(await clock.run(client.patch(NODES, { name: 'n1' }, patch)), { metadata: { labels: { mine: 'yes' } } });
});
