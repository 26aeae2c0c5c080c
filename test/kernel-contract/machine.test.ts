import test from 'ava';
import { NftError } from '../../dataplane/nft-error.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { ModelMachine } from '../../sim/kernel/machine.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

// What the model has and no namespace of a test: devices of the machine, a clock that waits, notifications that a test loses.

function makeMachine() {
  const clock = new VirtualClock();
  const nftRefused = (stderr: string) => new NftError('NFT_REFUSED', 'load nftables', stderr);
  return { clock, machine: new ModelMachine({ clock, nftRefused }) };
}

const NIC = { ifname: 'eth1', address: '20:90:6f:00:00:01' };

test('plugIn: the interface of an ENI goes back to the host when the namespace ends that has it', (t) => {
  const { machine } = makeMachine();
  const rtnetlink = machine.openRtnetlink(machine.host);
  const ifindex = machine.plugIn(machine.host, NIC);
  const sandbox = machine.createNetns('sandbox');
  rtnetlink.link.set({ ifindex, ifalias: 'mine' });
  rtnetlink.link.set({ ifindex, netns: sandbox, ifname: 'eth0' });
  t.is(rtnetlink.link.get({ ifindex }), undefined);
  sandbox.close();
  t.is(rtnetlink.link.list().length, 1, 'its name keeps the namespace');
  machine.deleteNetns('sandbox');
  const back = rtnetlink.link.list().find(({ address }) => address === NIC.address);
  t.like(back, { ifname: 'eth0', ifalias: 'mine' });
  t.is(back?.kind, undefined);
  machine.unplug(machine.host, back?.ifindex ?? 0);
  t.is(rtnetlink.link.list().length, 1);
});

test('Clock: an address of IPv6 is tentative for a second, and a run of nft and a deletion take their time', async (t) => {
  const { clock, machine } = makeMachine();
  const rtnetlink = machine.openRtnetlink(machine.host);
  const ifindex = machine.plugIn(machine.host, NIC);
  rtnetlink.link.set({ ifindex, up: true });
  const isTentative = () => rtnetlink.address.list({ family: AF_INET6 }).map(({ flags }) => (flags & 0x40) !== 0);
  t.deepEqual(isTentative(), [true]);
  await clock.advance(999);
  t.deepEqual(isTentative(), [true]);
  await clock.advance(1);
  t.deepEqual(isTentative(), [false]);
  const { ifindex: veth } = rtnetlink.link.addPair({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v1' } });
  const startMs = clock.monotonicMs();
  await clock.run(rtnetlink.link.deleteInBackground(veth));
  await clock.run(machine.openNft(machine.host).load('table inet tke_eni\n'));
  t.is(clock.monotonicMs() - startMs, 30);
});

test('openMonitor: what a test loses is one overrun', async (t) => {
  const { clock, machine } = makeMachine();
  const rtnetlink = machine.openRtnetlink(machine.host);
  using monitor = machine.openMonitor(machine.host, { groups: ['ipv4-rule'], gatherMs: 10 });
  for (const priority of [1, 2]) rtnetlink.rule.add({ family: AF_INET, priority, table: 5 });
  monitor.lose();
  await clock.advance(20);
  rtnetlink.rule.add({ family: AF_INET, priority: 3, table: 5 });
  const events = monitor[Symbol.asyncIterator]();
  const next = () => clock.run(events.next());
  t.deepEqual((await next()).value, { kind: 'overrun' });
  t.like((await next()).value, { kind: 'rule', message: { priority: 3 } });
});

test('ModelMachine: what it does not have is no answer of a kernel', async (t) => {
  const { clock, machine } = makeMachine();
  const rtnetlink = machine.openRtnetlink(machine.host);
  const multipath = [{ oif: 1 }, { oif: 2 }];
  t.throws(() => rtnetlink.route.add({ dst: '10.0.0.0/8', multipath }), {
    message: 'the model of the kernel has no route with multipath',
  });
  const nft = machine.openNft(machine.host);
  await t.throwsAsync(clock.run(nft.canonical('table inet tke_eni {\n\tset s {\n\t\ttype ipv4_addr\n\t}\n}\n')), {
    message: /^the model of the kernel has no part of a table like "set s/,
  });
});

test('ModelMachine: descriptors mean nothing to another machine', (t) => {
  const [one, other] = [makeMachine().machine, makeMachine().machine];
  const netns = one.createNetns('sandbox');
  t.throws(() => other.openRtnetlink(netns), { message: /^EBADF/ });
  netns.close();
  t.throws(() => one.openRtnetlink(netns), { message: /^EBADF/ });
});
