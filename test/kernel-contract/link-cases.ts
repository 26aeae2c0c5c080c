import { IFF_LOWER_UP, IFF_NOARP, IFF_PROMISC, IFF_UP } from '../../netlink/uapi/if-link.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { acceptDad, rpFilter } from '../../sysctl/sysctl-key.ts';
import { type ContractCase, codeLater, codeOf } from './contract-case.ts';
import type { ContractNetns } from './machine.ts';
import { linkOf } from './observation.ts';

const MAC = '02:00:00:00:00:0a';
const POD_MAC = '02:00:00:00:00:0b';

const pair = (host: ContractNetns, name: string, pod?: ContractNetns, up = true): number =>
  host.rtnetlink.link.add({
    ...{ kind: 'veth', ifname: name, address: MAC, up },
    peer: { ifname: pod === undefined ? `${name}p` : 'eth0', address: POD_MAC, ...(pod && { netns: pod }) },
  });

const namesOf = ({ rtnetlink }: ContractNetns): readonly string[] => rtnetlink.link.list().map(({ ifname }) => ifname);

/** Links: what the plans make, change and delete of them. */
export const LINK_CASES: readonly ContractCase[] = [
  {
    what: 'a pair is made in one request, each end in its namespace',
    run({ host, createNetns }) {
      const pod = createNetns();
      const made = host.rtnetlink.link.addPair({
        ...{ kind: 'veth', ifname: 'eni0', ifindex: 70, address: MAC, mtu: 1400, group: 4007, up: true },
        peer: { ifname: 'eth0', ifindex: 71, address: POD_MAC, mtu: 1300, netns: pod },
      });
      host.rtnetlink.link.set({ ifindex: 70, ifalias: 'tke-eni/sandbox/eth0' });
      const end = pod.rtnetlink.link.get({ ifname: 'eth0' });
      return [made, linkOf(host.rtnetlink.link.get({ ifindex: 70 })), linkOf(end)];
    },
    sees: [
      { ifindex: 70, peerIfindex: 71 },
      {
        ...{ ifindex: 70, ifname: 'eni0', type: 1, flags: 4099, mtu: 1400, address: MAC, group: 4007, kind: 'veth' },
        ...{ ifalias: 'tke-eni/sandbox/eth0', link: 71, isElsewhere: true },
      },
      {
        ...{ ifindex: 71, ifname: 'eth0', type: 1, flags: 4098, mtu: 1300, address: POD_MAC, group: 0, kind: 'veth' },
        ...{ link: 70, isElsewhere: true },
      },
    ],
  },
  {
    what: 'the other end of a pair gets its number first',
    run({ host, createNetns }) {
      const pod = createNetns();
      const { link } = host.rtnetlink;
      return [
        link.addPair({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v1' } }),
        link.addPair({ kind: 'veth', ifname: 'v2', peer: { ifname: 'eth0', netns: pod } }),
        link.addPair({ kind: 'veth', ifname: 'v3', ifindex: 90, peer: { ifname: 'eth1', ifindex: 90, netns: pod } }),
      ];
    },
    sees: [
      { ifindex: 3, peerIfindex: 2 },
      { ifindex: 4, peerIfindex: 2 },
      { ifindex: 90, peerIfindex: 90 },
    ],
  },
  {
    what: 'what is there already is not made, and a number that is given is not given again',
    run({ host, createNetns }) {
      const pod = createNetns();
      const { link } = host.rtnetlink;
      pair(host, 'v0', pod);
      const add = (spec: Parameters<typeof link.add>[0]) => codeOf(() => link.add(spec));
      return [
        add({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v9' } }),
        add({ kind: 'veth', ifname: 'v1', peer: { ifname: 'eth0', netns: pod } }),
        add({ kind: 'veth', ifname: 'v1', peer: { ifname: 'v1' } }),
        add({ kind: 'veth', ifname: 'v1', ifindex: 2, peer: { ifname: 'v2' } }),
        add({ kind: 'veth', ifname: 'v1', ifindex: 50, peer: { ifname: 'v2', ifindex: 2, netns: pod } }),
        add({ kind: 'veth', ifname: 'v1', peer: { ifname: 'v2', netns: { fd: 0x7fff_fff0 } } }),
        add({ kind: 'bridge', ifname: 'v0' }),
        namesOf(host),
        namesOf(pod),
        link.add({ kind: 'bridge', ifname: 'b0' }),
      ];
    },
    sees: [...['EEXIST', 'EEXIST', 'EEXIST', 'EEXIST', 'EBUSY', 'EBADF', 'EEXIST'], ['lo', 'v0'], ['lo', 'eth0'], 4],
  },
  {
    what: 'both ends of a pair go together, with addresses, routes, neighbours and settings',
    run({ host, createNetns }) {
      const pod = createNetns();
      const ifindex = pair(host, 'v0', pod);
      pod.rtnetlink.link.set({ ifindex: 2, up: true });
      host.sysctl.set(rpFilter('v0'), '1');
      host.rtnetlink.address.add({ ifindex, address: '10.0.0.1', prefixlen: 24 });
      host.rtnetlink.route.add({ dst: '10.1.0.0/16', oif: ifindex, table: 3999, protocol: 84 });
      host.rtnetlink.route.add({ dst: 'fd00::1/128', oif: ifindex, table: 3999, protocol: 84 });
      host.rtnetlink.rule.add({ family: AF_INET, priority: 512, table: 3999, protocol: 84 });
      host.rtnetlink.neigh.add({ ifindex, dst: '10.0.0.7', lladdr: MAC });
      pod.rtnetlink.link.delete({ ifname: 'eth0' });
      return {
        links: [namesOf(host), namesOf(pod)],
        addresses: host.rtnetlink.address.list(),
        routes: [AF_INET, AF_INET6].flatMap((family) => host.rtnetlink.route.list({ family })),
        rules: host.rtnetlink.rule.list({ family: AF_INET, protocol: 84 }).length,
        neighs: host.rtnetlink.neigh.list(),
        setting: host.sysctl.find(rpFilter('v0')),
        again: [
          codeOf(() => host.rtnetlink.link.delete({ ifindex })),
          codeOf(() => host.rtnetlink.link.delete({ ifname: 'v0' })),
          codeOf(() => host.rtnetlink.link.set({ ifindex, mtu: 1400 })),
          host.rtnetlink.link.get({ ifindex }),
        ],
      };
    },
    sees: {
      ...{ links: [['lo'], ['lo']], addresses: [], routes: [], rules: 1, neighs: [], setting: undefined },
      again: ['ENODEV', 'ENODEV', 'ENODEV', undefined],
    },
  },
  {
    what: 'a pair goes with the namespace of one end',
    async run({ host, createNetns, until }) {
      const pod = createNetns();
      pair(host, 'v0', pod);
      pod.end();
      return [await until(() => namesOf(host).length === 1)];
    },
    sees: [true],
  },
  {
    what: 'a link is changed, renamed and moved; it is down there, and has nothing of what it had',
    run({ host, createNetns }) {
      const pod = createNetns();
      const ifindex = pair(host, 'v0');
      const { link, address } = host.rtnetlink;
      address.add({ ifindex, address: '10.0.0.1', prefixlen: 32 });
      link.set({
        ifindex,
        mtu: 1300,
        address: '02:00:00:00:00:0c',
        group: 9,
        ifalias: 'mine',
        promisc: true,
        arp: false,
      });
      const { mtu, address: mac, group, ifalias, flags = 0 } = link.get({ ifindex }) ?? {};
      link.set({ ifindex, up: false });
      link.set({ ifindex, ifname: 'renamed' });
      link.set({ ifindex, netns: pod, ifname: 'eth0' });
      const moved = pod.rtnetlink.link.get({ ifname: 'renamed' }) ?? pod.rtnetlink.link.get({ ifname: 'eth0' });
      return [
        { mtu, mac, group, ifalias, flags: flags & (IFF_UP | IFF_PROMISC | IFF_NOARP) },
        link.get({ ifindex }),
        [
          moved?.ifname,
          moved?.ifindex,
          moved?.mtu,
          moved?.ifalias,
          moved?.address,
          moved?.group,
          (moved?.flags ?? 0) & IFF_UP,
        ],
        pod.rtnetlink.address.list(),
      ];
    },
    sees: [
      { mtu: 1300, mac: '02:00:00:00:00:0c', group: 9, ifalias: 'mine', flags: IFF_UP | IFF_PROMISC | IFF_NOARP },
      undefined,
      ['eth0', 3, 1300, 'mine', '02:00:00:00:00:0c', 9, 0],
      [],
    ],
  },
  {
    what: 'a link moves before it gets its new name, and gets another number where its own is taken',
    run({ host, createNetns }) {
      const pod = createNetns();
      const ifindex = pair(host, 'v0');
      pair(pod, 'w0');
      const { link } = host.rtnetlink;
      const taken = codeOf(() => link.set({ ifindex, netns: pod, ifname: 'w0' }));
      const there = pod.rtnetlink.link.get({ ifname: 'v0' })?.ifindex;
      link.set({ ifindex: 2, netns: pod });
      return [taken, there, pod.rtnetlink.link.get({ ifname: 'v0p' })?.ifindex, namesOf(host)];
    },
    sees: ['EEXIST', 4, 5, ['lo']],
  },
  {
    what: 'what the kernel refuses of a change',
    run({ host, createNetns }) {
      const pod = createNetns();
      const ifindex = pair(host, 'v0', pod);
      const other = pair(host, 'v1');
      const bridge = host.rtnetlink.link.add({ kind: 'bridge', ifname: 'br0' });
      const set = (change: Parameters<typeof host.rtnetlink.link.set>[0]) =>
        codeOf(() => host.rtnetlink.link.set(change));
      return {
        taken: set({ ifindex, up: false, ifname: 'v1' }),
        mtu: [set({ ifindex, mtu: 10 }), set({ ifindex, mtu: 65_536 })],
        port: set({ ifindex, bridgePort: { mode: 1 } }),
        master: [
          set({ ifindex, master: 999 }),
          set({ ifindex, master: other }),
          set({ ifindex: bridge, master: bridge }),
        ],
        netns: [
          set({ ifindex: 1, netns: pod }),
          set({ ifindex: bridge, netns: pod }),
          set({ ifindex, netns: { fd: 0x7fff_fff0 } }),
        ],
        lo: codeOf(() => host.rtnetlink.link.delete({ ifindex: 1 })),
        none: [set({ ifindex: 999, up: true }), codeOf(() => host.rtnetlink.link.delete({ ifindex: 999 }))],
      };
    },
    sees: {
      ...{ taken: 'EEXIST', mtu: ['EINVAL', 'EINVAL'], port: 'EOPNOTSUPP', master: ['EINVAL', 'EOPNOTSUPP', 'ELOOP'] },
      ...{ netns: ['EINVAL', 'EINVAL', 'EBADF'], lo: 'EOPNOTSUPP', none: ['ENODEV', 'ENODEV'] },
    },
  },
  {
    what: 'a pair has a carrier while both ends are up',
    async run({ host, createNetns, until }) {
      const pod = createNetns();
      const ifindex = pair(host, 'v0', pod);
      const has = () => ((host.rtnetlink.link.get({ ifindex })?.flags ?? 0) & IFF_LOWER_UP) !== 0;
      const before = has();
      pod.rtnetlink.link.set({ ifindex: 2, up: true });
      const during = await until(has);
      pod.rtnetlink.link.set({ ifindex: 2, up: false });
      return [before, during, await until(() => !has())];
    },
    sees: [false, true, true],
  },
  {
    what: 'a link that has a carrier gets its link-local address of IPv6, and loses it when it goes down',
    async run({ host, createNetns, until }) {
      const pod = createNetns();
      for (const { sysctl } of [host, pod]) sysctl.set(acceptDad('default'), '0');
      const ifindex = pair(host, 'v0', pod);
      const own = () =>
        host.rtnetlink.address
          .list({ ifindex, family: AF_INET6 })
          .map(({ address, prefixlen, scope }) => [address, prefixlen, scope]);
      const before = own();
      pod.rtnetlink.link.set({ ifindex: 2, up: true });
      await until(() => own().length > 0);
      const during = own();
      const route = host.rtnetlink.route
        .list({ family: AF_INET6, table: 254 })
        .map(({ dst, oif, protocol, priority }) => [dst, oif, protocol, priority]);
      host.rtnetlink.link.set({ ifindex, up: false });
      return [before, during, route, own(), host.rtnetlink.route.list({ family: AF_INET6, table: 254 })];
    },
    sees: [[], [['fe80::ff:fe00:a', 64, 253]], [['fe80::/64', 2, 2, 256]], [], []],
  },
  {
    what: 'ports of a bridge: what a new one is, what a bridge takes with it',
    run({ host }) {
      const { link } = host.rtnetlink;
      const bridge = link.add({ kind: 'bridge', ifname: 'br0', address: '02:00:00:00:00:01' });
      const port = link.add({ kind: 'veth', ifname: 'v0', master: bridge, peer: { ifname: 'v1' } });
      const fields = () => {
        const { mode, isolated, unicastFlood, learning } = link.get({ ifindex: port })?.bridgePort ?? {};
        return { mode, isolated, unicastFlood, learning, master: link.get({ ifindex: port })?.master };
      };
      const fresh = fields();
      link.set({ ifindex: port, bridgePort: { mode: 1, learning: 0 } });
      const changed = fields();
      const names = [{ kind: 'bridge' }, { master: bridge }, { group: 0 }].map((filter) =>
        link.list(filter).map(({ ifname }) => ifname),
      );
      link.set({ ifindex: port, master: 0 });
      const out = fields();
      link.set({ ifindex: port, master: bridge });
      link.delete({ ifindex: bridge });
      return { fresh, changed, names, out, after: fields(), left: namesOf(host) };
    },
    sees: {
      fresh: { mode: 0, isolated: 0, unicastFlood: 1, learning: 1, master: 2 },
      changed: { mode: 1, isolated: 0, unicastFlood: 1, learning: 0, master: 2 },
      names: [['br0'], ['v0'], ['lo', 'br0', 'v1', 'v0']],
      out: { mode: undefined, isolated: undefined, unicastFlood: undefined, learning: undefined, master: undefined },
      after: { mode: undefined, isolated: undefined, unicastFlood: undefined, learning: undefined, master: undefined },
      left: ['lo', 'v1', 'v0'],
    },
  },
  {
    what: 'a bridge has the smallest MTU of its ports, unless somebody set one',
    run({ host }) {
      const { link } = host.rtnetlink;
      const bridge = link.add({ kind: 'bridge', ifname: 'br0', mtu: 1300 });
      const port = link.add({ kind: 'veth', ifname: 'v0', mtu: 1400, peer: { ifname: 'v1' } });
      const seen: unknown[] = [];
      const after = (change: Parameters<typeof link.set>[0]) => {
        link.set(change);
        seen.push(link.get({ ifindex: bridge })?.mtu);
      };
      after({ ifindex: port, master: bridge });
      after({ ifindex: port, mtu: 1200 });
      after({ ifindex: port, master: 0 });
      after({ ifindex: bridge, mtu: 1350 });
      after({ ifindex: port, master: bridge });
      return seen;
    },
    sees: [1400, 1200, 1500, 1350, 1350],
  },
  {
    what: 'a namespace is entered by a descriptor that is one',
    run({ createNetns, enter }) {
      const pod = createNetns();
      using inPod = enter(pod);
      inPod.rtnetlink.link.set({ ifindex: 1, up: true });
      return [
        codeOf(() => enter({ fd: 0x7fff_fff0 })),
        pod.rtnetlink.address.list({ ifindex: 1 }).length,
        inPod.sysctl.get(rpFilter('lo')),
        inPod.packetLinks(),
      ];
    },
    sees: ['EBADF', 2, '0', []],
  },
  {
    what: 'the place of traffic filters is made once, and goes with its link',
    run({ host }) {
      const ifindex = pair(host, 'v0');
      const { rtnetlink } = host;
      const spec = (of: number) => ({ ifindex: of, kind: 'clsact' }) as const;
      const codes = (verb: 'add' | 'delete', ...of: readonly number[]) =>
        rtnetlink
          .execute(of.map((one) => ({ object: 'qdisc', verb, spec: spec(one) })))
          .map((outcome) => (outcome.kind === 'error' ? outcome.error.code : outcome.kind));
      const places = () =>
        rtnetlink.qdisc
          .list()
          .filter(({ kind }) => kind === 'clsact')
          .map((one) => one.ifindex);
      const made = [codes('add', ifindex, ifindex, 999), places()];
      const gone = [codes('delete', ifindex, ifindex, 999), places()];
      codes('add', ifindex, 2);
      rtnetlink.link.delete({ ifindex });
      return [made, gone, places()];
    },
    sees: [[['ok', 'EEXIST', 'ENODEV'], [3]], [['ok', 'EINVAL', 'ENODEV'], []], []],
  },
  {
    what: 'links are deleted side by side in the background; each deletion gets its own answer',
    async run({ host, createNetns, finish }) {
      const pod = createNetns();
      const { link } = host.rtnetlink;
      const make = (name: string, group: number) =>
        Array.from({ length: 3 }, (_, i) =>
          link.add({ kind: 'veth', ifname: `${name}${i}`, group, peer: { ifname: `${name}p${i}`, netns: pod } }),
        );
      make('k', 4007);
      const gone = [...make('g', 4007), 999_999, ...make('d', 0)];
      const codes = await finish(Promise.all(gone.map((ifindex) => codeLater(link.deleteInBackground(ifindex)))));
      return [codes, namesOf(host), namesOf(pod).toSorted()];
    },
    sees: [
      ['ok', 'ok', 'ok', 'ENODEV', 'ok', 'ok', 'ok'],
      ['lo', 'k0', 'k1', 'k2'],
      ['kp0', 'kp1', 'kp2', 'lo'],
    ],
  },
];
