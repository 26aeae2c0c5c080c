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
    // Who may not ask believes the description.
    const code = 'UnauthorizedOperation.CamNoAuth';
    host.faults.add({ fault: { kind: 'error', code }, actions: ['DescribeVpcTaskResult'] });
    t.deepEqual(await cloud.tasks.settle(await move(one, other), contextOf()), DONE);
  };
  await wait(ends());
  await close();
});
