import { checkPod } from '../../dataplane/check-pod.ts';
import { letGo } from '../../dataplane/let-go.ts';
import type { NodeNetwork } from '../../dataplane/network.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { unwirePod } from '../../dataplane/unwire-pod.ts';
import { isWireError } from '../../dataplane/wire-error.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { rpFilter } from '../../sysctl/sysctl-key.ts';
import { type ContractCase, codeOf } from './contract-case.ts';
import type { ContractMachine, ContractNetns } from './machine.ts';
import { type ContractNode, makeNode, podOf } from './node.ts';

const MODES = ['compact', 'per-pod'] as const;
const DUAL = ['10.0.5.10', 'fd00:10:0:5::10'];
const FAMILIES = { IPv4: ['10.0.5.10'], IPv6: ['fd00:10:0:5::10'], 'dual stack': DUAL } as const;

/** What a Pod, and a node, can be damaged by, and what repair does then. */
type Damage = {
  readonly what: string;
  damage(machine: ContractMachine): unknown;
  /** A line of the repair. */
  readonly mends: string;
};

const DAMAGES: readonly Damage[] = [
  {
    what: 'all IPv4 rules of ours deleted',
    damage: ({ host: { rtnetlink } }) => {
      for (const rule of rtnetlink.rule.list({ family: AF_INET, protocol: 84 })) rtnetlink.rule.delete(rule);
    },
    mends: 'ip -4 rule add pref 512 lookup 3999 proto 84',
  },
  {
    what: 'a flushed table',
    damage: ({ host: { rtnetlink } }) => {
      for (const route of rtnetlink.route.list({ family: AF_INET, table: 4025 })) rtnetlink.route.delete(route);
    },
    mends: 'ip route replace default via 10.0.5.1 dev eth5 table 4025 proto 84',
  },
  {
    what: "an ENI's deleted address, which empties its table",
    damage: ({ host: { rtnetlink } }) => rtnetlink.address.delete({ ifindex: 25, address: '10.0.5.5', prefixlen: 32 }),
    mends: 'ip route replace default via 10.0.5.1 dev eth5 table 4025 proto 84',
  },
  {
    what: 'an ENI set down',
    damage: ({ host: { rtnetlink } }) => rtnetlink.link.set({ ifindex: 26, up: false }),
    mends: 'ip route replace default via 10.0.6.1 dev eth6 table 4026 proto 84',
  },
  {
    what: 'a setting',
    damage: ({ host: { sysctl } }) => sysctl.set(rpFilter('eth5'), '1'),
    mends: 'sysctl -w net.ipv4.conf.eth5.rp_filter=2',
  },
  {
    what: 'another MTU of an ENI',
    damage: ({ host: { rtnetlink } }) => rtnetlink.link.set({ ifindex: 25, mtu: 1300 }),
    mends: 'ip link set dev eth5 mtu 1500',
  },
  {
    what: 'a route in the place of ours',
    damage: ({ host: { rtnetlink } }) =>
      rtnetlink.route.replace({ family: AF_INET6, gateway: 'fe80::9', oif: 25, table: 4025, protocol: 84 }),
    mends: 'ip -6 route replace default via fd00:10:0:5::1 dev eth5 table 4025 proto 84',
  },
];

const DIFFERENCES: readonly {
  readonly what: string;
  damage(host: ContractNetns, pod: ContractNetns, ifindex: number): unknown;
  readonly says: RegExp;
}[] = [
  {
    what: 'a missing host route',
    damage: ({ rtnetlink }, _pod, oif) => rtnetlink.route.delete({ dst: '10.0.5.10/32', oif, table: 3999 }),
    says: /^host: route "10\.0\.5\.10\/32 dev eni\w+ table 3999 proto 84 scope link" is missing$/,
  },
  {
    what: 'a changed MTU',
    damage: ({ rtnetlink }, _pod, ifindex) => rtnetlink.link.set({ ifindex, mtu: 1300 }),
    says: /^host: link eni\w+: mtu is 1300, should be 1400$/,
  },
  {
    what: 'a changed group',
    damage: ({ rtnetlink }, _pod, ifindex) => rtnetlink.link.set({ ifindex, group: 9 }),
    says: /^host: link eni\w+: group is 9, should be 4025$/,
  },
  {
    what: 'a changed sysctl',
    damage: ({ rtnetlink, sysctl }, _pod, ifindex) =>
      sysctl.set(rpFilter(rtnetlink.link.get({ ifindex })?.ifname ?? ''), '0'),
    says: /^host: sysctl net\.ipv4\.conf\.eni\w+\.rp_filter is 0, should be 1$/,
  },
  {
    what: 'an IPv4 address on the host veth',
    damage: ({ rtnetlink }, _pod, ifindex) => rtnetlink.address.add({ ifindex, address: '192.0.2.1', prefixlen: 32 }),
    says: /^host: eni\w+ has the IPv4 address 192\.0\.2\.1\/32: its Pod could forge sources/,
  },
  {
    what: 'a missing nftables table',
    damage: ({ nft }) => nft.load('delete table inet tke_eni\n'),
    says: /^host: nftables table inet tke_eni is missing$/,
  },
  {
    what: 'a flushed chain',
    damage: ({ nft }) => nft.load('flush chain inet tke_eni via_4026\n'),
    says: /^host: nftables table inet tke_eni is altered$/,
  },
  {
    what: 'a chain without the rule for the group of the Pod',
    damage: ({ nft }) => nft.load('flush chain inet tke_eni prerouting\n'),
    says: /^host: nftables table inet tke_eni is altered; it has no rule for link group 4025$/,
  },
  {
    what: 'a missing address in the Pod',
    damage: (_host, { rtnetlink }) =>
      rtnetlink.address.delete({ ifindex: 2, address: 'fd00:10:0:5::10', prefixlen: 128 }),
    says: /^Pod: address fd00:10:0:5::10\/128 is missing on eth0$/,
  },
  {
    what: 'a missing default route in the Pod',
    damage: (_host, { rtnetlink }) => rtnetlink.route.delete({ family: AF_INET6 }),
    says: /^Pod: route "default via fe80::1 dev eth0 proto 84" is missing$|^Pod: route "::\/0/,
  },
  {
    what: 'another neighbour in the Pod',
    damage: (_host, { rtnetlink }) =>
      rtnetlink.neigh.replace({ ifindex: 2, dst: '169.254.1.1', lladdr: '02:00:00:00:00:99' }),
    says: /^Pod: neighbour 169\.254\.1\.1 on eth0 is 02:00:00:00:00:99, should be 02:/,
  },
  {
    what: 'a missing interface in the Pod',
    damage: (_host, { rtnetlink }) => {
      rtnetlink.link.set({ ifindex: 2, up: false });
      rtnetlink.link.set({ ifindex: 2, ifname: 'gone' });
    },
    says: /^Pod: interface eth0 is missing$/,
  },
];

/** Which addresses of these the node refuses. */
function refusedOf({ kernel }: ContractNode, ips: readonly string[]): readonly string[] {
  return ips.filter((dst) => codeOf(() => kernel.rtnetlink.route.get({ dst })) === 'EHOSTUNREACH');
}

const IPS = ['10.0.5.10', '10.0.6.11', 'fd00:10:0:5::10', 'fd00:10:0:6::11'];

/** The code of the product on a kernel: plan, repair, wiring, CHECK and what ends a Pod. */
export const WIRING_CASES: readonly ContractCase[] = [
  ...MODES.map(
    (ruleMode): ContractCase => ({
      what: `a bare node is brought to its plan, and then nothing is left to do, in ${ruleMode} mode`,
      async run(machine) {
        const node = makeNode(machine);
        const desired = planNode({ ...node.network, ruleMode }, node.enis, []);
        const lines = await node.reach(desired);
        const routes = machine.host.rtnetlink.route
          .list({ family: AF_INET, table: 4025 })
          .map(({ dst, gateway, oif, type, priority }) => [dst, gateway, oif, type, priority]);
        return [lines.length > 10, await node.reach(desired), routes, machine.host.sysctl.get(rpFilter('eth5'))];
      },
      sees: [
        true,
        [],
        [
          [undefined, '10.0.5.1', 25, 1, undefined],
          [undefined, undefined, undefined, 7, 2 ** 31 - 1],
          ['10.0.5.1/32', undefined, 25, 1, undefined],
        ],
        '2',
      ],
    }),
  ),
  ...DAMAGES.map(
    ({ what, damage, mends }): ContractCase => ({
      what: `repair finds and mends ${what}`,
      async run(machine) {
        const node = makeNode(machine);
        const desired = planNode(node.network, node.enis, []);
        await node.reach(desired);
        const planned = node.traces();
        damage(machine);
        const lines = await node.reach(desired);
        const isAsBefore = node.traces().toSorted().join('\n') === planned.toSorted().join('\n');
        return [lines.some((line) => line.startsWith(mends)) || lines, isAsBefore, await node.reach(desired)];
      },
      sees: [true, true, []],
    }),
  ),
  ...MODES.flatMap((ruleMode) =>
    Object.entries(FAMILIES).map(
      ([name, ips]): ContractCase => ({
        what: `a Pod of ${name} is wired, is found as planned, and leaves nothing behind, in ${ruleMode} mode`,
        async run(machine) {
          const node = makeNode(machine);
          const network = { ...node.network, ruleMode };
          const desired = planNode(network, node.enis, []);
          await node.reach(desired);
          const clean = node.traces();
          const sandbox = machine.createNetns();
          const pod = node.wire(sandbox, podOf(ips), network);
          const check = { node: network, pod, ...(desired.nft && { nft: desired.nft }) };
          const found = await machine.finish(checkPod(node.kernel, sandbox, check));
          const changes = await node.reach(planNode(network, node.enis, [pod]));
          const isReached = ips.map((dst) => machine.host.rtnetlink.route.get({ dst }).oif === pod.hostVeth.ifindex);
          const { hadLink, finished } = unwirePod(node.kernel, network, pod);
          const hasLeft = node.traces().join('\n') === clean.join('\n');
          await machine.finish(finished);
          const again = unwirePod(node.kernel, network, pod);
          await machine.finish(again.finished);
          return {
            ...{ found, changes, isReached: isReached.every(Boolean), hadLink, hasLeft, again: again.hadLink },
            links: [machine.host, sandbox].map(({ rtnetlink }) => rtnetlink.link.list().map(({ ifname }) => ifname)),
          };
        },
        sees: {
          ...{ found: [], changes: [], isReached: true, hadLink: true, hasLeft: true, again: false },
          links: [['lo', 'eth0', 'eth5', 'eth6'], ['lo']],
        },
      }),
    ),
  ),
  {
    what: 'a Pod has its address, the gateway that nobody owns, and a permanent neighbour',
    run(machine) {
      const node = makeNode(machine);
      const sandbox = machine.createNetns();
      node.wire(sandbox, podOf(DUAL));
      const { rtnetlink } = sandbox;
      return {
        routes: [AF_INET, AF_INET6].map((family) =>
          rtnetlink.route.list({ family, protocol: 84 }).map(({ dst, gateway, oif }) => [dst, gateway, oif]),
        ),
        neighs: rtnetlink.neigh
          .list()
          .filter(({ state }) => state === 0x80)
          .map(({ dst, lladdr }) => `${dst} ${lladdr}`)
          .toSorted(),
        addresses: rtnetlink.address
          .list({ ifindex: 2 })
          .filter(({ scope }) => scope === 0)
          .map(({ address, prefixlen, flags }) => `${address}/${prefixlen} ${flags}`),
      };
    },
    sees: {
      routes: [
        [
          [undefined, '169.254.1.1', 2],
          ['169.254.1.1/32', undefined, 2],
        ],
        [[undefined, 'fe80::1', 2]],
      ],
      neighs: ['169.254.1.1 02:00:00:00:10:01', 'fe80::1 02:00:00:00:10:01'],
      addresses: ['10.0.5.10/32 128', 'fd00:10:0:5::10/128 642'],
    },
  },
  {
    what: 'an interface of another in the Pod is named and left alone',
    run(machine) {
      const node = makeNode(machine);
      const sandbox = machine.createNetns();
      sandbox.rtnetlink.link.add({ kind: 'veth', ifname: 'eth0', peer: { ifname: 'other' } });
      const code = wireCodeOf(() => node.wire(sandbox, podOf(['10.0.5.10'])));
      return [code, machine.host.rtnetlink.link.list().length, sandbox.rtnetlink.link.list().length];
    },
    sees: [
      'IFNAME_TAKEN: the sandbox c0ffee1 already has an interface eth0 that is not ours; choose another CNI_IFNAME or delete it',
      4,
      3,
    ],
  },
  {
    what: 'the fallback name is taken when another sandbox of the same Pod lives under the wanted one',
    run(machine) {
      const node = makeNode(machine);
      const make = (ip: string, id: number) => {
        const pod = podOf([ip], id);
        return node.wire(machine.createNetns(), { ...pod, hostVeth: { ...pod.hostVeth, name: 'eni00000000001' } });
      };
      const pods = [make('10.0.5.10', 1), make('10.0.5.11', 2)];
      return [
        ...pods.map(({ hostVeth }) => hostVeth.name === 'eni00000000001'),
        ...pods.map(
          ({ hostVeth, alias }) => machine.host.rtnetlink.link.get({ ifname: hostVeth.name })?.ifalias === alias,
        ),
      ];
    },
    sees: [true, false, true, true],
  },
  {
    what: 'its own leftover is replaced, with or without an alias',
    run(machine) {
      const node = makeNode(machine);
      const sandbox = machine.createNetns();
      const { link } = machine.host.rtnetlink;
      const first = node.wire(sandbox, podOf(['10.0.5.10']));
      const second = node.wire(sandbox, podOf(['10.0.5.10']));
      link.set({ ifindex: second.hostVeth.ifindex ?? 0, ifalias: '' });
      const third = node.wire(sandbox, podOf(['10.0.5.10']));
      return [
        new Set([first, second, third].map(({ hostVeth }) => hostVeth.ifindex)).size,
        new Set([first, second, third].map(({ hostVeth }) => hostVeth.name)).size,
        link.list({ group: 4025 }).length,
      ];
    },
    sees: [3, 1, 1],
  },
  {
    what: 'all that was done is taken back when the host side cannot be made',
    run(machine) {
      const node = makeNode(machine);
      const sandbox = machine.createNetns();
      const { link, route } = machine.host.rtnetlink;
      link.set({ ifindex: 25, up: true });
      route.add({ dst: '10.0.5.10/32', oif: 25, protocol: 4 });
      const before = node.traces();
      const network = { ...node.network, ruleMode: 'per-pod' as const };
      const code = wireCodeOf(() => node.wire(sandbox, podOf(['10.0.5.10']), network));
      return [
        code.replace(/eni[0-9a-f]{11}/, 'eni…'),
        ...[node.traces().join('\n') === before.join('\n'), sandbox.rtnetlink.link.list().length],
        route.list({ family: AF_INET, table: 254 }).filter(({ dst }) => dst === '10.0.5.10/32').length,
      ];
    },
    sees: [
      'ROUTE_TAKEN: cannot add "10.0.5.10/32 dev eni… proto 84 scope link": a route for 10.0.5.10/32 of protocol 4 stands there; remove it or its owner',
      ...[true, 1, 1],
    ],
  },
  {
    what: 'a Pod whose namespace is gone is unwired, also twice at once',
    async run(machine) {
      const node = makeNode(machine);
      const network = { ...node.network, ruleMode: 'per-pod' as const };
      const clean = node.traces();
      const sandbox = machine.createNetns();
      const pod = node.wire(sandbox, podOf(['10.0.5.10']), network);
      sandbox.end();
      const ends = [unwirePod(node.kernel, network, pod), unwirePod(node.kernel, network, pod)];
      await machine.finish(Promise.all(ends.map(({ finished }) => finished)));
      return [node.traces().join('\n') === clean.join('\n'), machine.host.rtnetlink.link.list().length];
    },
    sees: [true, 4],
  },
  {
    what: 'a link that got the number of an old one is left alone, and its route',
    async run(machine) {
      const node = makeNode(machine);
      const sandbox = machine.createNetns();
      const living = node.wire(sandbox, podOf(['10.0.5.10'], 2));
      const old = podOf(['10.0.5.10'], 1);
      const stale = {
        ...old,
        hostVeth: {
          ...old.hostVeth,
          ...(living.hostVeth.ifindex !== undefined && { ifindex: living.hostVeth.ifindex }),
        },
      };
      const { hadLink, finished } = unwirePod(node.kernel, node.network, stale);
      await machine.finish(finished);
      return [hadLink, await machine.finish(checkPod(node.kernel, sandbox, { node: node.network, pod: living }))];
    },
    sees: [false, []],
  },
  {
    what: 'the link of an attachment whose lease knows no number is found',
    async run(machine) {
      const node = makeNode(machine);
      const pod = podOf(['10.0.5.10']);
      node.wire(machine.createNetns(), pod);
      const { hadLink, finished } = unwirePod(node.kernel, node.network, pod);
      await machine.finish(finished);
      return [hadLink, machine.host.rtnetlink.link.list({ group: 4025 }).length];
    },
    sees: [true, 0],
  },
  ...DIFFERENCES.map(
    ({ what, damage, says }): ContractCase => ({
      what: `CHECK reports ${what}`,
      async run(machine) {
        const node = makeNode(machine);
        const desired = planNode(node.network, node.enis, []);
        await node.reach(desired);
        const sandbox = machine.createNetns();
        const pod = node.wire(sandbox, podOf(DUAL));
        await machine.finish(Promise.resolve(damage(machine.host, sandbox, pod.hostVeth.ifindex ?? 0)));
        const check = { node: node.network, pod, ...(desired.nft && { nft: desired.nft }) };
        const found = await machine.finish(checkPod(node.kernel, sandbox, check));
        return [found.length, says.test(found.join('\n')) || found];
      },
      sees: [1, true],
    }),
  ),
  ...MODES.map(
    (ruleMode): ContractCase => ({
      what: `an address of the node is refused from the end of its Pod to the next one, in ${ruleMode} mode`,
      async run(machine) {
        const node = makeNode(machine);
        const network: NodeNetwork = { ...node.network, ruleMode, assignedIps: IPS };
        await node.reach(planNode(network, node.enis, []));
        const refused = [refusedOf(node, IPS).length];
        for (const id of [1, 2]) {
          const pod = node.wire(machine.createNetns(), podOf(DUAL, id), network);
          refused.push(refusedOf(node, IPS).length);
          const { finished } = unwirePod(node.kernel, network, pod);
          refused.push(refusedOf(node, IPS).length);
          await machine.finish(finished);
        }
        const left = await node.reach(planNode(network, node.enis, []));
        letGo(machine.host.rtnetlink, ['10.0.5.10', 'FD00:10:0:5::10']);
        letGo(machine.host.rtnetlink, ['10.0.5.10', 'FD00:10:0:5::10']);
        return [refused, left, refusedOf(node, IPS)];
      },
      sees: [[4, 2, 4, 2, 4], [], ['10.0.6.11', 'fd00:10:0:6::11']],
    }),
  ),
];

function wireCodeOf(wire: () => unknown): string {
  try {
    wire();
    return 'ok';
  } catch (error) {
    if (isWireError(error)) return `${error.code}: ${error.message}`;
    throw error;
  }
}
