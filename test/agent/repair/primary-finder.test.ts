import test from 'ava';
import { noteOccupied, usePodCidrs } from '../../../agent/bridge/accept-pod-cidr.ts';
import type { HostView } from '../../../agent/node/node-network.ts';
import { createPrimaryFinder } from '../../../agent/repair/primary-finder.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
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
  const state = new NodeState();
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
