import test from 'ava';
import { PODS } from '../../kube/resource-types.ts';
import type { LinkMessage, LinkProperties } from '../../netlink/link-message.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { IFF_NOARP, IFF_PROMISC, IFF_UP } from '../../netlink/uapi/if-link.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { openNode, type SceneEni } from './one-node.ts';

// A Pod that has the interface of an ENI as its own may change of it what root may. The kernel takes the interface back to the host with
// all of that. Exclusive ENIs come first: their interfaces have the lower indexes.
const [OWN, OTHER, SHARED] = ['20:90:6f:00:00:aa', '20:90:6f:00:00:bb', '20:90:6f:00:00:11'] as const;
const ENIS: readonly SceneEni[] = [
  { eniID: 'eni-own', mac: OWN, mode: 'direct-eni' },
  { eniID: 'eni-other', mac: OTHER, mode: 'direct-eni' },
  { eniID: 'eni-shared', mac: SHARED },
];

type Name = 'own' | 'next';

async function openScene() {
  const clock = new VirtualClock();
  const node = await openNode(clock, 'node-01', { enis: ENIS });
  const { host, rtnetlink } = node;
  let agent = await node.start();
  const isReady = () => agent.served.useCases.status() === undefined;
  await clock.until(isReady, 10_000);
  const nicOf = (mac: string) => rtnetlink.link.list().find(({ permAddress }) => permAddress === mac);
  return {
    ...{ clock, host, rtnetlink, nicOf },
    add: async (name: Name) => {
      const metadata = {
        name,
        namespace: 'default',
        annotations: { 'tke.cloud.tencent.com/networks': 'tke-direct-eni' },
      };
      const spec = { nodeName: 'node-01', containers: [{ name: 'c', image: 'i' }] };
      const made = await clock.run(node.kube.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec }));
      const pod = { podNamespace: 'default', podName: name, podUid: made.metadata.uid ?? '' };
      const netns = host.startSandbox({ id: name, state: 'ready', ...pod });
      const call = {
        ...({ plugin: 'direct-eni', containerId: name, ifName: 'eth0', netns, network: 'tke-direct-eni' } as const),
        ...{ ...pod, mtu: 0, disableIpv6: false, uplink: false, deadlineAtMs: 0 },
      };
      const done = await clock.run(agent.served.useCases.attach(call, new AbortController().signal));
      if (done.kind !== 'attached') throw new Error(JSON.stringify(done));
      using ref = host.ports({ clock, nodeName: 'x', serving: () => {} }).namespaces.open(netns);
      return { lease: done.lease, netns, inPod: host.kernel.openRtnetlink({ fd: ref.fd }) };
    },
    del: (name: Name) => clock.run(agent.served.useCases.detach({ containerId: name, ifName: 'eth0' })),
    restart: async () => {
      agent.kill();
      agent = await node.start();
      await clock.until(isReady, 10_000);
    },
    killAgent: () => agent.kill(),
    close: async () => {
      await agent.close();
      return agent.faults;
    },
  };
}

/** What a link of a machine is set to, but for its index. */
const settingsOf = ({ ifname, address, broadcast, mtu, group, txqlen, ifalias, flags }: LinkMessage) => ({
  ...{ ifname, address, broadcast, mtu, group, txqlen, ifalias },
  flags: flags & (IFF_UP | IFF_NOARP | IFF_PROMISC),
});

const HOSTILE: readonly (readonly [what: string, change: LinkProperties])[] = [
  ['the MAC of a shared ENI', { address: SHARED }],
  ['any MAC', { address: '02:00:00:00:00:01' }],
  ['the MAC of another exclusive ENI', { address: OTHER }],
  ['an alias that names an interface', { ifalias: 'tke-eni-nic/c/eth0/cbr0' }],
  ['an alias with a name that no interface can have', { ifalias: `tke-eni-nic/c/eth0/${'n'.repeat(40)}` }],
  ['an alias as links of Pods have', { ifalias: 'tke-eni/victim/eth0' }],
  ['no alias and another name', { ifalias: '', ifname: 'cbr0' }],
  ['ARP off, promiscuous, a group', { arp: false, promisc: true, group: 7 }],
  ['MTU, queue and broadcast', { mtu: 68, txqlen: 1, broadcast: '02:00:00:00:00:02' }],
];

function attack({ link }: Pick<Rtnetlink, 'link'>, change: LinkProperties, ifname = 'eth0'): void {
  const { ifindex = 0 } = link.get({ ifname }) ?? {};
  link.set({ ifindex, up: false, ...change });
}

for (const [what, change] of HOSTILE) {
  test(`exclusive ENI: what its Pod changed goes when its namespace ends: ${what}`, async (t) => {
    const scene = await openScene();
    const { clock, host, nicOf } = scene;
    const before = settingsOf(nicOf(OWN) as LinkMessage);
    const others = () => [OTHER, SHARED].map((mac) => nicOf(mac));
    const { lease, inPod } = await scene.add('own');
    t.is(lease.nic?.mac, OWN);
    const untouched = others();
    attack(inPod, change);
    host.endSandbox('own');
    await clock.advance(60_000);
    t.deepEqual(others(), untouched, 'while the lease is there');
    await scene.del('own');
    await clock.advance(60_000);
    t.deepEqual(settingsOf(nicOf(OWN) as LinkMessage), before);
    t.deepEqual(others(), untouched, 'after the DEL');
    t.deepEqual(await scene.close(), []);
  });

  test(`exclusive ENI: what its Pod changed goes with a DEL: ${what}`, async (t) => {
    const scene = await openScene();
    const { clock, nicOf } = scene;
    const before = settingsOf(nicOf(OWN) as LinkMessage);
    attack((await scene.add('own')).inPod, change);
    await scene.del('own');
    t.deepEqual(settingsOf(nicOf(OWN) as LinkMessage), before);
    await clock.advance(600_000);
    t.deepEqual(await scene.close(), []);
  });
}

test('exclusive ENI: without a lease it comes back under a name by its MAC, with an MTU that every ENI carries', async (t) => {
  const scene = await openScene();
  const { clock, host, nicOf } = scene;
  attack((await scene.add('own')).inPod, { address: SHARED, mtu: 68, ifalias: 'tke-eni-nic/c/eth0/cbr0' });
  scene.killAgent();
  host.endSandbox('own');
  host.journal.lose();
  await scene.restart();
  await clock.advance(60_000);
  const nic = nicOf(OWN) as LinkMessage;
  t.like(settingsOf(nic), { ifname: 'enx20906f0000aa', address: OWN, mtu: 1500, ifalias: undefined });
  const { lease } = await scene.add('next');
  t.is(lease.nic?.hostName, lease.nic?.mac === OWN ? 'enx20906f0000aa' : 'eth2');
  t.deepEqual(await scene.close(), []);
});

test('exclusive ENI: a Pod gets it as a new device, whatever it was set to before', async (t) => {
  const scene = await openScene();
  const { rtnetlink, nicOf } = scene;
  const { ifname, broadcast, txqlen } = nicOf(OWN) as LinkMessage;
  attack(rtnetlink, { address: SHARED, arp: false, promisc: true, group: 7, txqlen: 1, broadcast: OTHER }, ifname);
  const { inPod } = await scene.add('own');
  const found = settingsOf(inPod.link.get({ ifname: 'eth0' }) as LinkMessage);
  t.like(found, { address: OWN, broadcast, txqlen, group: 0, flags: IFF_UP });
  t.deepEqual(await scene.close(), []);
});

test('shared ENI: its MAC is put back, and its routes stay', async (t) => {
  const scene = await openScene();
  const { clock, rtnetlink, nicOf } = scene;
  const { ifindex = 0 } = nicOf(SHARED) ?? {};
  const routes = () => rtnetlink.route.list({ family: 2, oif: ifindex }).length;
  const before = routes();
  t.true(before > 0);
  rtnetlink.link.set({ ifindex, address: '02:11:22:33:44:55' });
  t.true(await clock.until(() => nicOf(SHARED)?.address === SHARED, 1_000), 'the kernel told of it');
  scene.killAgent();
  rtnetlink.link.set({ ifindex, address: '02:11:22:33:44:55' });
  await scene.restart();
  t.is(nicOf(SHARED)?.address, SHARED, 'while no agent ran');
  t.is(routes(), before);
  t.not((nicOf(SHARED)?.flags ?? 0) & IFF_UP, 0);
  t.deepEqual(await scene.close(), []);
});
