import test from 'ava';
import { noteOccupied, usePodCidrs } from '../../../agent/bridge/accept-pod-cidr.ts';
import type { HostView } from '../../../agent/node/node-network.ts';
import { createPrimaryFinder } from '../../../agent/repair/primary-finder.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';

const VIEW = {
  links: [{ ifindex: 2, ifname: 'eth0', mtu: 1500, address: '52:54:00:00:00:01' }],
  addresses: [
    { ifindex: 2, family: 2, address: '10.0.0.5', local: '10.0.0.5', prefixlen: 20 },
    { ifindex: 3, family: 2, address: '172.20.0.1', local: '172.20.0.1', prefixlen: 26 },
    { ifindex: 2, family: 10, address: 'fe80::1', prefixlen: 64 },
  ],
  mainRoutes: [],
} as unknown as HostView;

function open() {
  const state = new NodeState(systemClock);
  const networks: (readonly string[])[] = [];
  const finder = createPrimaryFinder({
    ...{ state, log: silentLogger, readHostView: () => VIEW, configuredName: 'eth0' },
    settings: {
      ...{ eniMarkMask: 0x00ff0000, rpFilterMode: 'loose', egress: 'eni', nodePort: true, nftables: true },
      ...{ podCidrs: [], vpcCidrs: [], serviceCidrs: [] },
    },
    bridge: { name: 'cbr0', wiring: 'bridge', mtu: 0 },
    observed: (found) => networks.push(found),
  });
  const occupy = (cidr: string) =>
    noteOccupied({ state, events: { report: () => {} }, log: silentLogger }, [{ cidr, what: 'the VPC' }]);
  return { state, finder, networks, occupy };
}

test('PrimaryFinder: tells the networks of the primary interface alone, not that of the bridge', (t) => {
  const { finder, networks } = open();
  finder.observe();
  t.deepEqual(networks, [['10.0.0.0/20']]);
});

test('PrimaryFinder: a block that is refused is not planned; where others have the bridge its rule stays', (t) => {
  const { state, finder, occupy } = open();
  finder.observe();
  usePodCidrs(state, ['10.0.3.0/26']);
  const blocks = () => finder.current()?.podCidrs.map(({ cidr, isCurrent }) => `${cidr} ${isCurrent}`);
  state.isBridgeUsed = true;
  t.deepEqual(blocks(), ['10.0.3.0/26 true']);
  occupy('10.0.0.0/16');
  t.deepEqual(blocks(), []);
  state.isBridgeUsed = false;
  t.deepEqual(blocks(), ['10.0.3.0/26 true'], 'as before there was a check: rule 1024 alone is planned');
});

test('PrimaryFinder: the one that was found stays, and what it was on is known while its addresses move', (t) => {
  const eth0 = { ifindex: 2, ifname: 'eth0', flags: 0 };
  const data0 = { ifindex: 3, ifname: 'data0', flags: 0 };
  const route = (oif: number, priority: number) => ({ oif, priority, family: 2 });
  const own = (ifindex: number) => ({ ifindex, family: 2, address: '10.0.0.5', prefixlen: 20 });
  let view: object = { links: [eth0], addresses: [own(2)], mainRoutes: [route(2, 100)] };
  const state = new NodeState(systemClock);
  const finder = createPrimaryFinder({
    ...{ state, log: silentLogger, readHostView: () => view as HostView, configuredName: '', recorded: undefined },
    settings: {
      ...{ eniMarkMask: 0x00ff0000, rpFilterMode: 'loose', egress: 'eni', nodePort: true, nftables: true },
      ...{ podCidrs: [], vpcCidrs: [], serviceCidrs: [] },
    },
  });
  const observed = (next: object): string | undefined => {
    view = { ...view, ...next };
    finder.observe();
    return finder.current()?.primary.ifname;
  };
  t.is(observed({}), 'eth0');
  t.is(observed({ links: [data0, eth0], mainRoutes: [route(3, 50), route(2, 100)] }), 'eth0');
  t.is(observed({ links: [data0, { ...eth0, ifname: 'ens5' }] }), 'ens5', 'renamed');
  t.is(observed({ addresses: [], mainRoutes: [] }), 'ens5', 'the address is on its way');
  t.is(observed({ links: [data0, eth0, { ifindex: 9, ifname: 'br0', flags: 0 }], addresses: [own(9)] }), 'br0');
  state.nodeIps = ['192.168.50.2'];
  t.is(observed({ addresses: [own(9), { ...own(3), address: '192.168.50.2' }] }), 'data0', 'the Node says so');
});

test('PrimaryFinder: at its start the one of the last plan, without any default route', (t) => {
  const finder = createPrimaryFinder({
    ...{ state: new NodeState(systemClock), log: silentLogger, readHostView: () => VIEW, configuredName: '' },
    recorded: { addresses: ['10.0.0.5'] },
    settings: {
      ...{ eniMarkMask: 0x00ff0000, rpFilterMode: 'loose', egress: 'eni', nodePort: true, nftables: true },
      ...{ podCidrs: [], vpcCidrs: [], serviceCidrs: [] },
    },
  });
  finder.observe();
  t.is(finder.primary()?.ifname, 'eth0');
});
