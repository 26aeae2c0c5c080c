import type { Monitor, MonitorEvent, MonitorGroup } from '../../netlink/monitor.ts';
import { IFA_F_NODAD } from '../../netlink/uapi/if-addr.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { acceptRa, addrGenMode, forwarding, ipForward, rpFilter } from '../../sysctl/sysctl-key.ts';
import { addUpPair } from './address-cases.ts';
import type { ContractCase } from './contract-case.ts';
import type { ContractMachine, ContractNetns } from './machine.ts';

/** What repair follows, but for nftables, which has a socket of its own. */
const GROUPS: readonly MonitorGroup[] = [
  ...(['link', 'neigh', 'ipv4-ifaddr', 'ipv6-ifaddr', 'ipv4-route', 'ipv6-route', 'ipv4-rule', 'ipv6-rule'] as const),
  ...(['ipv4-netconf', 'ipv6-netconf'] as const),
];

/** The priority of the rule that ends a listening. */
const LAST = 31_000;

/** Does changes in a namespace, and returns what is told of them, in order; what of one link is told several times, once. */
async function heard(
  { finish }: ContractMachine,
  netns: ContractNetns,
  groups: readonly MonitorGroup[],
  change: () => unknown,
): Promise<readonly string[]> {
  using monitor = netns.monitor({ groups: [...new Set([...groups, 'ipv4-rule' as const])] });
  await change();
  netns.rtnetlink.rule.add({ family: AF_INET, priority: LAST, table: 5 });
  const events = await finish(readUntil(monitor, (event) => event.kind === 'rule' && event.message.priority === LAST));
  const lines = events.slice(0, -1).map((event) => lineOf(event, netns.rtnetlink.portid));
  // A carrier is told after it can be seen.
  const ofChange = lines.filter((line) => !/^link new v\d 1500 0 up$/.test(line));
  return ofChange.filter((line, at) => line !== ofChange[at - 1]);
}

/** Makes a pair and waits for its carrier, which the kernel sees in its own time; without link-local addresses. */
async function addReadyPair({ host, until }: ContractMachine): Promise<number> {
  host.sysctl.set(addrGenMode('default'), '1');
  const ifindex = addUpPair(host);
  const { route } = host.rtnetlink;
  const isGroup = ({ dst }: { readonly dst?: string }): boolean => dst === 'ff00::/8';
  await until(() => route.list({ family: AF_INET6, table: 255 }).filter(isGroup).length === 2);
  return ifindex;
}

/** Waits for an address of IPv6, which the kernel makes ready in its own time. */
async function isReady({ host, until }: ContractMachine, prefix: string): Promise<void> {
  const { route } = host.rtnetlink;
  await until(() => route.list({ family: AF_INET6, table: 255 }).some(({ dst }) => dst === prefix));
}

async function readUntil(monitor: Monitor, isLast: (event: MonitorEvent) => boolean): Promise<readonly MonitorEvent[]> {
  const events: MonitorEvent[] = [];
  for await (const event of monitor) {
    events.push(event);
    if (isLast(event)) break;
  }
  return events;
}

/** What of an event a program that follows the kernel decides by; `own`: it names this connection. */
function lineOf(event: MonitorEvent, portid: number): string {
  if (event.kind === 'overrun') return 'overrun';
  const by = event.portid === portid ? 'own' : event.portid === 0 ? 'kernel' : 'other';
  const { kind, op } = event;
  const head = `${kind} ${op}`;
  switch (event.kind) {
    case 'link': {
      const { ifname, mtu, group, flags } = event.message;
      return op === 'del' ? `${head} ${ifname}` : `${head} ${ifname} ${mtu} ${group} ${flags & IFF_UP ? 'up' : 'down'}`;
    }
    case 'address': {
      const { address, prefixlen } = event.message;
      return `${head} ${address}/${prefixlen} ${by}`;
    }
    case 'route': {
      const { dst = 'default', table, oif } = event.message;
      return `${head} ${dst} ${table} ${oif} ${by}`;
    }
    case 'rule': {
      const { family, priority, table } = event.message;
      return `${head} ${family} ${priority} ${table} ${by}`;
    }
    case 'neigh': {
      const { dst, lladdr } = event.message;
      return `${head} ${dst} ${lladdr} ${by}`;
    }
    case 'netconf': {
      const { family, ifindex, forwarding: on, rpFilter: rp } = event.message;
      return `${head} ${family} ${ifindex} ${on ?? '-'} ${rp ?? '-'} ${by}`;
    }
    case 'nftables':
      return `${head} ${event.process ?? ''}`;
    default:
      return head;
  }
}

/** Notifications: what they are of, in which order, and who is named as their cause. */
export const MONITOR_CASES: readonly ContractCase[] = [
  {
    what: 'changes of this connection name it, but for those of links, of IPv6 addresses and of settings',
    async run(machine) {
      const { host } = machine;
      const ifindex = await addReadyPair(machine);
      const { address, route, rule, neigh, link } = host.rtnetlink;
      return await heard(machine, host, GROUPS, async () => {
        address.add({ ifindex, address: '10.0.0.9', prefixlen: 32 });
        address.add({ ifindex, address: 'fd00::9', prefixlen: 128, flags: IFA_F_NODAD });
        await isReady(machine, 'fd00::9/128');
        const four = { dst: '10.1.0.0/16', oif: ifindex, table: 4007, protocol: 84 };
        const six = { dst: 'fd01::/64', oif: ifindex, table: 4007, protocol: 84 };
        for (const spec of [four, six]) {
          route.add(spec);
          route.replace({ ...spec, oif: 2 });
          route.delete(spec.dst === four.dst ? { ...four, oif: 2 } : { ...six, oif: 2 });
        }
        rule.add({ family: AF_INET, priority: 512, table: 3999 });
        rule.add({ family: AF_INET6, priority: 513, table: 3999 });
        rule.delete({ family: AF_INET, priority: 512 });
        neigh.replace({ ifindex, dst: '10.0.0.7', lladdr: '02:00:00:00:00:01' });
        link.set({ ifindex, mtu: 1400, group: 7 });
        address.delete({ ifindex, address: 'fd00::9', prefixlen: 128 });
        address.delete({ ifindex, address: '10.0.0.9', prefixlen: 32 });
      });
    },
    sees: [
      ...['address new 10.0.0.9/32 own', 'route new 10.0.0.9/32 255 3 kernel', 'route new fd00::9/128 254 3 kernel'],
      ...['address new fd00::9/128 kernel', 'route new fd00::9/128 255 3 kernel'],
      ...['route new 10.1.0.0/16 4007 3 own', 'route new 10.1.0.0/16 4007 2 own', 'route del 10.1.0.0/16 4007 2 own'],
      ...['route new fd01::/64 4007 3 own', 'route new fd01::/64 4007 2 own', 'route del fd01::/64 4007 2 own'],
      ...['rule new 2 512 3999 own', 'rule new 10 513 3999 own', 'rule del 2 512 3999 own'],
      ...['neigh new 10.0.0.7 02:00:00:00:00:01 own', 'link new v0 1400 0 up', 'link new v0 1400 7 up'],
      ...['address del fd00::9/128 kernel', 'route del fd00::9/128 255 3 kernel', 'route del fd00::9/128 254 3 kernel'],
      ...['address del 10.0.0.9/32 own', 'route del 10.0.0.9/32 255 3 kernel'],
      'neigh del 10.0.0.7 02:00:00:00:00:01 kernel',
    ],
  },
  {
    what: 'with a link its addresses and its IPv6 routes are told, and not the routes of IPv4 that go with it',
    async run(machine) {
      const { host } = machine;
      const ifindex = await addReadyPair(machine);
      const { address, route, link } = host.rtnetlink;
      address.add({ ifindex, address: '10.0.0.9', prefixlen: 32 });
      address.add({ ifindex, address: 'fd00::9', prefixlen: 128, flags: IFA_F_NODAD | 0x200 });
      route.add({ dst: '10.1.0.0/16', oif: ifindex, table: 4007, protocol: 84 });
      route.add({ dst: 'fd01::/64', oif: ifindex, table: 4007, protocol: 84 });
      await isReady(machine, 'fd00::9/128');
      const groups: readonly MonitorGroup[] = ['ipv4-ifaddr', 'ipv6-ifaddr', 'ipv4-route', 'ipv6-route'];
      return heard(machine, host, groups, () => link.delete({ ifindex })).then((lines) =>
        lines.filter((line) => !/ ff00::\/8| fd00::9\/128 255 /.test(line)),
      );
    },
    sees: [
      ...['route del fd01::/64 4007 3 kernel', 'address del fd00::9/128 kernel', 'address del 10.0.0.9/32 kernel'],
      'route del 10.0.0.9/32 255 3 kernel',
    ],
  },
  {
    what: 'a link that goes down loses its IPv6 addresses and routes with a word, its IPv4 routes without',
    async run(machine) {
      const { host } = machine;
      const ifindex = await addReadyPair(machine);
      const { address, route, link } = host.rtnetlink;
      address.add({ ifindex, address: '10.0.0.9', prefixlen: 24 });
      address.add({ ifindex, address: 'fd00::9', prefixlen: 128, flags: IFA_F_NODAD | 0x200 });
      route.add({ dst: '10.1.0.0/16', oif: ifindex, table: 4007, protocol: 84 });
      route.add({ dst: 'fd01::/64', oif: ifindex, table: 4007, protocol: 84 });
      await isReady(machine, 'fd00::9/128');
      const groups: readonly MonitorGroup[] = ['ipv4-ifaddr', 'ipv6-ifaddr', 'ipv4-route', 'ipv6-route'];
      return heard(machine, host, groups, () => link.set({ ifindex, up: false })).then((lines) =>
        lines.filter((line) => !/ ff00::\/8| fd00::9\/128 255 /.test(line)),
      );
    },
    sees: ['route del fd01::/64 4007 3 kernel', 'address del fd00::9/128 kernel'],
  },
  {
    what: 'a pair is told in both namespaces when it comes and when it goes',
    async run(machine) {
      const { host, createNetns } = machine;
      const pod = createNetns();
      let ofPod: readonly string[] = [];
      const ofHost = await heard(machine, host, ['link'], async () => {
        ofPod = await heard(machine, pod, ['link'], () => {
          const { link } = host.rtnetlink;
          const ifindex = link.add({
            ...{ kind: 'veth', ifname: 'v0', group: 4007, up: true, mtu: 1400 },
            peer: { ifname: 'eth0', mtu: 1400, netns: pod },
          });
          link.delete({ ifindex });
        });
      });
      return [ofHost.filter((line) => line.startsWith('link')), ofPod.filter((line) => line.startsWith('link'))];
    },
    sees: [
      ['link new v0 1400 4007 up', 'link new v0 1400 4007 down', 'link del v0'],
      ['link new eth0 1400 0 down', 'link del eth0'],
    ],
  },
  {
    what: 'forwarding and rp_filter are told of a link, of all and of what comes; other settings are not',
    run(machine) {
      const { host } = machine;
      addUpPair(host);
      const { sysctl } = host;
      return heard(machine, host, ['ipv4-netconf', 'ipv6-netconf'], () => {
        sysctl.set(rpFilter('v0'), '2');
        sysctl.set(rpFilter('v0'), '2');
        sysctl.set(rpFilter('all'), '1');
        sysctl.set(acceptRa('v0'), '2');
        sysctl.set(forwarding(4, 'v0'), '1');
        sysctl.set(forwarding(6, 'v0'), '1');
        sysctl.set(ipForward(), '1');
        sysctl.set(forwarding(6, 'all'), '1');
        sysctl.set(ipForward(), '1');
      });
    },
    sees: [
      ...['netconf new 2 3 - 2 kernel', 'netconf new 2 -1 - 1 kernel', 'netconf new 2 3 1 - kernel'],
      ...['netconf new 10 3 1 - kernel', 'netconf new 2 -1 1 - kernel', 'netconf new 2 -2 1 - kernel'],
      ...['netconf new 2 1 1 - kernel', 'netconf new 2 2 1 - kernel', 'netconf new 2 3 1 - kernel'],
      ...['netconf new 10 -2 1 - kernel', 'netconf new 10 1 1 - kernel', 'netconf new 10 2 1 - kernel'],
      'netconf new 10 -1 1 - kernel',
    ],
  },
  {
    what: 'each monitor hears its groups, of its namespace',
    async run(machine) {
      const { host, createNetns, finish } = machine;
      const other = createNetns();
      using rules = host.monitor({ groups: ['ipv4-rule'] });
      using both = host.monitor({ groups: ['ipv4-rule', 'ipv6-rule'] });
      using there = other.monitor({ groups: ['ipv4-rule'] });
      host.rtnetlink.rule.add({ family: AF_INET6, priority: 6, table: 100 });
      host.rtnetlink.rule.add({ family: AF_INET, priority: 7, table: 100 });
      other.rtnetlink.rule.add({ family: AF_INET, priority: 8, table: 100 });
      const firstOf = async (monitor: Monitor) => {
        const [event] = await finish(readUntil(monitor, () => true));
        return event?.kind === 'rule' ? event.message.priority : undefined;
      };
      return [await firstOf(rules), await firstOf(both), await firstOf(there)];
    },
    sees: [7, 6, 8],
  },
  {
    what: 'what another connection changes names another',
    run(machine) {
      const { host } = machine;
      const other = host.openRtnetlink();
      return heard(machine, host, ['ipv4-rule'], () => other.rule.add({ family: AF_INET, priority: 9, table: 100 }));
    },
    sees: ['rule new 2 9 100 other'],
  },
  {
    what: 'gathered notifications come together, and later ones too',
    async run({ host, finish }) {
      using monitor = host.monitor({ groups: ['ipv4-rule'], gatherMs: 20 });
      let count = 0;
      const add = (priority: number) => host.rtnetlink.rule.add({ family: AF_INET, priority, table: 100 });
      for (const priority of [1, 2, 3]) add(priority);
      const first = await finish(readUntil(monitor, () => ++count === 3));
      for (const priority of [4, 5]) add(priority);
      const second = await finish(readUntil(monitor, () => ++count === 5));
      return [first, second].map((events) =>
        events.map((event) => (event.kind === 'rule' ? event.message.priority : 0)),
      );
    },
    sees: [
      [1, 2, 3],
      [4, 5],
    ],
  },
  {
    what: 'a queue that is full becomes one overrun, and is read on',
    async run({ host, finish }) {
      using monitor = host.monitor({ groups: ['ipv4-rule'], queueCapacity: 3, gatherMs: 1 });
      for (let priority = 1; priority < 9; priority++)
        host.rtnetlink.rule.add({ family: AF_INET, priority, table: 100 });
      const events = await finish(readUntil(monitor, (event) => event.kind === 'rule' && event.message.priority === 8));
      return [events.some(({ kind }) => kind === 'overrun'), events.length <= 4];
    },
    sees: [true, true],
  },
  {
    what: 'a monitor that is closed ends what waits, and what begins later',
    async run({ host, finish }) {
      const monitor = host.monitor({ groups: ['ipv4-rule'], gatherMs: 10_000 });
      host.rtnetlink.rule.add({ family: AF_INET, priority: 7, table: 100 });
      const waiting = readUntil(monitor, () => false);
      monitor.close();
      monitor.close();
      return [await finish(waiting), await finish(readUntil(monitor, () => false))];
    },
    sees: [[], []],
  },
];
