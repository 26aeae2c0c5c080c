import test from 'ava';
import { attachedEni, contextOf, inProcess } from '../cloud-fixture.ts';

const DONE = { kind: 'done' } as const;

test('settle: an address that moves back is there when its task says so, not when an old description does', async (t) => {
  const { cloud, host, wait, close } = await inProcess();
  const ends = async (): Promise<void> => {
    const one = await attachedEni(cloud, 'one', 'ins-cores002', 1);
    const other = await attachedEni(cloud, 'other', 'ins-cores008');
    const ip = (await cloud.enis.describe([one], contextOf()))[0]?.ips.find(({ isPrimary }) => !isPrimary)?.ip ?? '';
    const move = async (from: string, to: string) => await cloud.ips.migrate(ip, from, to, contextOf());
    t.deepEqual(await cloud.tasks.settle(await move(one, other), contextOf()), DONE);
    // Longer ago than the move took.
    const old = { fault: { kind: 'stale', ms: 4_000 }, actions: ['DescribeNetworkInterfaces'] } as const;
    const heal = host.faults.add(old);
    t.deepEqual(await cloud.tasks.settle(await move(other, one), contextOf()), DONE);
    heal();
    const [eni] = await cloud.enis.describe([one], contextOf());
    t.is(eni?.ips.find((found) => found.ip === ip)?.state, 'AVAILABLE');
  };
  await wait(ends());
  await close();
});

test('settle: who may not ask for tasks believes the description', async (t) => {
  const { cloud, host, wait, close } = await inProcess({ taskMs: [5, 30] });
  const ends = async (): Promise<void> => {
    const one = await attachedEni(cloud, 'one', 'ins-cores002');
    const code = 'UnauthorizedOperation.CamNoAuth';
    host.faults.add({ fault: { kind: 'error', code }, actions: ['DescribeVpcTaskResult'] });
    const { tasks } = await cloud.ips.assign(one, 1, contextOf());
    host.forget();
    for (const task of tasks) t.deepEqual(await cloud.tasks.settle(task, contextOf()), DONE);
    t.true((host.counts()['DescribeVpcTaskResult'] ?? 0) > 0, 'the first description shows it');
  };
  await wait(ends());
  await close();
});
