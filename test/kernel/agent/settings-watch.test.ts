import test from 'ava';
import type { Lease } from '../../../agent/journal/lease.ts';
import { openSettingsWatch } from '../../../agent/repair/settings-watch.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import type { EniNetwork, NodeNetwork } from '../../../dataplane/network.ts';
import { DEFAULT_ENI_MARK_MASK } from '../../../dataplane/numbers.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { withNetns } from '../../../netlink/netns.ts';
import { NETCONFA_IFINDEX_ALL } from '../../../netlink/uapi/netconf.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';
import { acceptRa, disableIpv6, forwarding, ipForward, rpFilter, tcpBeLiberal } from '../../../sysctl/sysctl-key.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';

const ENIS = 8;
const PODS = 200;
const READS = 20;
/** So many calls read all settings. */
const SLICES = 20;
/** So often the agent reads all settings. */
const INTERVAL_S = 5;

/** A node whose settings are as planned, with both families. Its links are there; nothing else is. */
function openNode(host: TestNetns, eniCount: number, podCount: number, changes: Partial<NodeNetwork> = {}) {
  const add = (ifname: string): number => host.rtnl.link.add({ kind: 'bridge', ifname });
  const primary = { ifindex: add('eth0'), ifname: 'eth0', addresses: ['10.0.0.2'] };
  const state = new NodeState(systemClock);
  const enis = Array.from({ length: eniCount }, (_, index): EniNetwork => {
    const [ifname, eniId] = [`eth${index + 1}`, `eni-${index + 1}`];
    const ifindex = add(ifname);
    return {
      ...{ eniId, ifindex, ifname, mtu: 1500, table: 4000 + ifindex, slot: index + 1, mac: '02:00:00:00:00:01' },
      addresses: [
        { ip: `10.1.${index}.2`, gateway: `10.1.${index}.1` },
        { ip: `fd00:${index}::2`, gateway: 'fe80::1' },
      ],
    };
  });
  state.plannedEnis = enis;
  for (const { eniId, table, slot, mac } of enis) state.eniRecords.set(eniId, { eniId, table, slot, mac } as never);
  for (let number = 0; number < podCount; number++) {
    const name = `eniv${number}`;
    const lease = {
      ...{ containerId: `c${number}`, ifName: 'eth0', plugin: 'route-eni', state: 'active', mtu: 1500 },
      ...{ network: '', netns: '', podNamespace: '', podName: '', eniId: enis[number % eniCount]?.eniId ?? '' },
      addresses: [
        { ip: `10.2.${number}.9`, family: 4, eniId: '', assignmentId: '' },
        { ip: `fd01:${number}::9`, family: 6, eniId: '', assignmentId: '' },
      ],
      hostVeth: { name, mac: '02:00:00:00:00:02', ifindex: add(name) },
      podMac: '02:00:00:00:00:03',
      createdAtMs: 0,
    } as unknown as Lease;
    state.leases.set(`c${number}/eth0`, lease);
  }
  const node: NodeNetwork = {
    ...{ ruleMode: 'compact', eniMarkMask: DEFAULT_ENI_MARK_MASK, rpFilterMode: 'loose', egress: 'eni', primary },
    ...{ podCidrs: [], families: [4, 6], nodePort: true, vpcCidrs: [] },
    ...changes,
  };
  const sysctl = openSysctl(host.netns);
  // As the agent does, which is in the namespace: the test enters it for each look as a whole.
  const inside = openSysctl();
  const pods = [...state.leases.values()].flatMap((lease) => state.podNetwork(lease) ?? []);
  sysctl.setAll(planNode(node, enis, pods).sysctls);
  const held = new Set<string>();
  const watch = openSettingsWatch({
    ...{ state, sysctl: inside, nodeNetwork: () => node, monotonicMs: () => 0 },
    fights: { isHeld: (object) => held.has(object) },
  });
  const differsAt = (ifindex = 0): boolean => withNetns(host.netns, () => watch.differsAt(ifindex));
  const differsNext = (): boolean => withNetns(host.netns, () => watch.differsNext());
  const differs = (): boolean => Array.from({ length: SLICES }, differsNext).includes(true);
  return { state, enis, sysctl, held, differs, differsAt, differsNext };
}

test('openSettingsWatch: finds a setting that differs, on its own link or the node, and no other', (t) => {
  using host = new TestNetns();
  const { enis, sysctl, differs, differsAt, state } = openNode(host, 2, 2);
  const [eni, other] = enis.map(({ ifindex }) => ifindex);
  const veth = [...state.leases.values()][0]?.hostVeth?.ifindex;
  t.false(differs());
  const cases = [
    { key: rpFilter('eth1'), wrong: '1', ifindex: eni, isNotified: true },
    { key: forwarding(4, 'eniv0'), wrong: '0', ifindex: veth, isNotified: true },
    { key: disableIpv6('eniv0'), wrong: '1', ifindex: veth, isNotified: false },
    { key: acceptRa('eth1'), wrong: '1', ifindex: eni, isNotified: false },
  ];
  for (const { key, wrong, ifindex, isNotified } of cases) {
    const [what, right] = [key.path.join('.'), sysctl.get(key)];
    sysctl.set(key, wrong);
    t.is(differs(), !isNotified, what);
    t.true(differsAt(ifindex), what);
    t.false(differsAt(other), what);
    t.false(differsAt(NETCONFA_IFINDEX_ALL), what);
    sysctl.set(key, right);
  }
  sysctl.set(ipForward(), '0');
  t.true(differsAt(NETCONFA_IFINDEX_ALL));
});

test('openSettingsWatch: each call reads what the fast path’s packets need at once', (t) => {
  using host = new TestNetns();
  const { sysctl, differsNext } = openNode(host, 2, 2, { fastPath: 'bpf' });
  t.is(sysctl.get(tcpBeLiberal()), '1');
  for (let call = 0; call < SLICES + 3; call++) {
    t.false(differsNext());
    sysctl.set(tcpBeLiberal(), '0');
    t.true(differsNext(), `call ${call}`);
    sysctl.set(tcpBeLiberal(), '1');
  }
});

test('openSettingsWatch: what waits does not differ', (t) => {
  using host = new TestNetns();
  const { enis, sysctl, differs, differsAt, held } = openNode(host, 1, 0);
  sysctl.set(acceptRa('eth1'), '1');
  held.add(`sysctl net.ipv6.conf.eth1.accept_ra ${enis[0]?.ifindex}`);
  t.false(differs());
  t.false(differsAt(enis[0]?.ifindex));
});

test(`openSettingsWatch: what ${ENIS} ENIs and ${PODS} Pods cost`, (t) => {
  using host = new TestNetns();
  const { differsAt, differsNext, enis } = openNode(host, ENIS, PODS);
  const cpuMs = (run: () => void, count: number): number => {
    run();
    const before = process.cpuUsage();
    for (let read = 0; read < count; read++) run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 / count;
  };
  const slice = cpuMs(differsNext, READS * SLICES);
  const one = cpuMs(() => differsAt(enis[0]?.ifindex), READS * SLICES);
  const share = (slice * SLICES) / (INTERVAL_S * 1_000);
  t.log(
    `settings that are not notified: ${slice.toFixed(2)} ms for a ${SLICES}th of them, ${SLICES} times in ${INTERVAL_S} s: ${(share * 100).toFixed(2)} % of a core`,
  );
  t.log(`the settings of one link, for a notification: ${one.toFixed(2)} ms`);
  t.true(share < 0.02);
});
