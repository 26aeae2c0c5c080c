import {
  acceptRedirects,
  addrGenMode,
  arpIgnore,
  disableIpv6,
  forwarding,
  ipForward,
  rpFilter,
  sysctlKey,
} from '../../sysctl/sysctl-key.ts';
import { addUpPair } from './address-cases.ts';
import { type ContractCase, codeOf } from './contract-case.ts';

/** Settings below /proc/sys/net. */
export const SETTING_CASES: readonly ContractCase[] = [
  {
    what: 'a setting is written once, and is that of its namespace',
    run({ host, createNetns }) {
      const other = createNetns();
      for (const one of [host, other]) one.rtnetlink.link.add({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v1' } });
      const { sysctl } = host;
      return [
        ...[sysctl.set(rpFilter('v0'), '2'), sysctl.set(rpFilter('v0'), '2'), sysctl.get(rpFilter('v0'))],
        ...[other.sysctl.get(rpFilter('v0')), host.sysctl.get(rpFilter('v1'))],
      ];
    },
    sees: ['changed', 'unchanged', '2', '0', '0'],
  },
  {
    what: 'a setting of a link that is not there',
    run({ host }) {
      const { sysctl } = host;
      const all = [
        { key: rpFilter('gone0'), value: '1', isOptional: true },
        { key: arpIgnore('lo'), value: '1' },
      ];
      return [
        ...[sysctl.find(rpFilter('gone0')), codeOf(() => sysctl.get(rpFilter('gone0')))],
        ...[codeOf(() => sysctl.set(rpFilter('gone0'), '1')), sysctl.setAll(all), sysctl.get(arpIgnore('lo'))],
        sysctl.find(sysctlKey('net', 'ipv4', 'conf', 'lo', 'no_such_setting')),
      ];
    },
    sees: [undefined, 'NO_SUCH_KEY', 'NO_SUCH_KEY', ['unchanged', 'changed'], '1', undefined],
  },
  {
    what: 'a value that the kernel refuses changes nothing',
    run: ({ host }) => [codeOf(() => host.sysctl.set(ipForward(), 'yes')), host.sysctl.get(ipForward())],
    sees: ['REFUSED', '0'],
  },
  {
    what: 'forwarding of all is that of each link and of those to come, and ends redirects',
    run({ host }) {
      addUpPair(host);
      const { sysctl } = host;
      const now = () => [
        ...[sysctl.get(ipForward()), sysctl.get(forwarding(4, 'all')), sysctl.get(forwarding(4, 'v0'))],
        ...[sysctl.get(forwarding(6, 'v0')), sysctl.get(acceptRedirects(4, 'all'))],
      ];
      const before = now();
      sysctl.set(ipForward(), '1');
      const four = now();
      sysctl.set(forwarding(6, 'all'), '1');
      host.rtnetlink.link.add({ kind: 'veth', ifname: 'w0', peer: { ifname: 'w1' } });
      return { before, four, six: now(), next: [sysctl.get(forwarding(4, 'w0')), sysctl.get(forwarding(6, 'w0'))] };
    },
    sees: {
      before: ['0', '0', '0', '0', '1'],
      four: ['1', '1', '1', '0', '0'],
      ...{ six: ['1', '1', '1', '1', '0'], next: ['1', '1'] },
    },
  },
  {
    what: 'a setting of IPv4 that is set for what comes is set for each link without one of its own or an address',
    run({ host }) {
      host.rtnetlink.link.add({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v1' } });
      const ifindex = host.rtnetlink.link.add({ kind: 'veth', ifname: 'a0', peer: { ifname: 'a1' } });
      host.rtnetlink.address.add({ ifindex, address: '10.0.0.9', prefixlen: 32 });
      const { sysctl } = host;
      sysctl.set(arpIgnore('v1'), '2');
      sysctl.set(arpIgnore('default'), '1');
      sysctl.set(acceptRedirects(6, 'default'), '0');
      host.rtnetlink.link.add({ kind: 'veth', ifname: 'w0', peer: { ifname: 'w1' } });
      const names = ['v0', 'v1', 'a0', 'w0'];
      return [
        names.map((name) => sysctl.get(arpIgnore(name))),
        names.map((name) => sysctl.get(acceptRedirects(6, name))),
      ];
    },
    sees: [
      ['1', '2', '0', '1'],
      ['1', '1', '1', '0'],
    ],
  },
  {
    what: 'settings follow a link when it is renamed, and start again in another namespace',
    run({ host, createNetns }) {
      const pod = createNetns();
      const ifindex = addUpPair(host);
      const { link } = host.rtnetlink;
      host.sysctl.set(rpFilter('v0'), '1');
      link.set({ ifindex, up: false });
      link.set({ ifindex, ifname: 'w0' });
      const renamed = [host.sysctl.find(rpFilter('v0')), host.sysctl.get(rpFilter('w0'))];
      link.set({ ifindex, netns: pod });
      return [renamed, host.sysctl.find(rpFilter('w0')), pod.sysctl.get(rpFilter('w0'))];
    },
    sees: [[undefined, '1'], undefined, '0'],
  },
  {
    what: 'a link gets its link-local address when it may have one again',
    run({ host }) {
      const ifindex = addUpPair(host);
      const { sysctl, rtnetlink } = host;
      sysctl.set(disableIpv6('v0'), '1');
      sysctl.set(addrGenMode('v0'), '1');
      sysctl.set(disableIpv6('v0'), '0');
      const own = () => rtnetlink.address.list({ ifindex }).map(({ address }) => address);
      const without = own();
      sysctl.set(addrGenMode('v0'), '0');
      return [without, own()];
    },
    sees: [[], ['fe80::ff:fe00:a']],
  },
];
