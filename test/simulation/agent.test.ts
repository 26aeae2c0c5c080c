import test from 'ava';
import { VirtualClock } from '../support/virtual-clock.ts';
import { watchMachine } from './machine-tripwire.ts';
import { openNode } from './one-node.ts';
import { RunRecord, recordingLogger } from './record.ts';

const POD = { podNamespace: 'default', podName: 'web-0', podUid: 'uid-web-0' };

const addOf = (netns: string) => ({
  ...({ plugin: 'route-eni', containerId: 'c1', ifName: 'eth0', netns, network: 'tke-route-eni' } as const),
  ...{ ...POD, mtu: 0, disableIpv6: false, uplink: false, deadlineAtMs: 0 },
});

test('startAgent: a whole agent runs on a machine in memory, on a clock of its own, and reaches nothing else', async (t) => {
  const clock = new VirtualClock();
  const { host, rtnetlink, linkTo, start } = await openNode(clock, 'node-01');
  const reached = watchMachine();
  const first = await start();
  t.true(await clock.until(() => first.served.useCases.status() === undefined, 10_000), 'it gets ready');
  const netns = host.startSandbox({ id: 'c1', state: 'ready', ...POD });
  const attached = await clock.run(first.served.useCases.attach(addOf(netns), new AbortController().signal));
  if (attached.kind !== 'attached') return t.fail(JSON.stringify(attached));
  const [ip = ''] = attached.lease.addresses.map((one) => one.ip);
  t.is(attached.lease.state, 'active');
  const link = rtnetlink.link.get({ ifname: attached.lease.hostVeth?.name ?? '' });
  t.is(linkTo(ip), link?.ifindex, 'packets to the Pod go to its link');

  // Someone deletes its route: repair hears it, and puts it back.
  for (const route of rtnetlink.route.list({ family: 2, oif: link?.ifindex ?? 0 })) rtnetlink.route.delete(route);
  t.is(linkTo(ip), undefined);
  t.true(await clock.until(() => linkTo(ip) === link?.ifindex, 1_000), 'repaired');

  // The next one has what the first one had.
  first.kill();
  const second = await start();
  t.true(await clock.until(() => second.served.useCases.status() === undefined, 10_000));
  const checked = await clock.run(second.served.useCases.check({ containerId: 'c1', ifName: 'eth0', netns }));
  t.like(checked, { kind: 'checked', differences: [], lease: { addresses: [{ ip }] } });
  t.is(await clock.run(second.served.useCases.detach({ containerId: 'c1', ifName: 'eth0' })), undefined);
  t.is(rtnetlink.link.get({ ifname: link?.ifname ?? '' }), undefined);
  await clock.advance(3_600_000);
  await second.close();
  t.deepEqual(second.faults, []);
  t.deepEqual(reached(), []);
});

test('startAgent: an agent without its journal adopts what the kernel and the namespaces have', async (t) => {
  const clock = new VirtualClock();
  const { host, linkTo, start } = await openNode(clock, 'node-01');
  const first = await start();
  t.true(await clock.until(() => first.served.useCases.status() === undefined, 10_000));
  const netns = host.startSandbox({ id: 'c1', state: 'ready', ...POD });
  const attached = await clock.run(first.served.useCases.attach(addOf(netns), new AbortController().signal));
  if (attached.kind !== 'attached') return t.fail(JSON.stringify(attached));
  const { addresses, hostVeth, podMac } = attached.lease;
  const ip = addresses[0]?.ip ?? '';
  const link = linkTo(ip);
  first.kill();
  host.journal.lose();

  const second = await start();
  t.true(await clock.until(() => second.served.useCases.status() === undefined, 10_000));
  t.is(linkTo(ip), link, 'its way was never another');
  const checked = await clock.run(second.served.useCases.check({ containerId: 'c1', ifName: 'eth0', netns }));
  const lease = { addresses, hostVeth, podMac, netns, podName: POD.podName };
  t.like(checked, { kind: 'checked', differences: [], lease });
  host.endSandbox('c1');
  t.true(await clock.until(() => linkTo(ip) === undefined, 600_000), 'collected when its sandbox is gone');
  await second.close();
  t.deepEqual(second.faults, []);
});

test('startAgent: two agents that live the same have the same log', async (t) => {
  const live = async (): Promise<readonly string[]> => {
    const clock = new VirtualClock();
    const record = new RunRecord(true);
    const log = recordingLogger((what) => record.note(clock.monotonicMs(), 'agent', what));
    const { host, start } = await openNode(clock, 'node-01', { log });
    const { served, close } = await start();
    await clock.advance(10_000);
    const netns = host.startSandbox({ id: 'c1', state: 'ready', ...POD });
    await clock.run(served.useCases.attach(addOf(netns), new AbortController().signal));
    await clock.run(served.useCases.detach({ containerId: 'c1', ifName: 'eth0' }));
    await clock.advance(600_000);
    await close();
    return record.lines;
  };
  const [one, other] = [await live(), await live()];
  t.true(one.some((line) => line.includes('pod attached')));
  t.deepEqual(one, other);
});

test('startAgent: a part that ends by an error ends its agent, and no other of this process', async (t) => {
  const clock = new VirtualClock();
  const [one, other] = [await openNode(clock, 'node-01'), await openNode(clock, 'node-02')];
  const hurt = await one.start((isReady) => {
    if (isReady) throw new Error('no descriptor is left');
  });
  const well = await other.start();
  t.true(await clock.until(() => hurt.faults.length > 0, 10_000));
  t.regex(hurt.faults[0]?.message ?? '', /^following the readiness ended by an error/);
  await clock.advance(60_000);
  t.deepEqual(well.faults, []);
  t.is(well.served.useCases.status(), undefined);
  await well.close();
});
