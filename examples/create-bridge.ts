/** Makes a bridge, puts a link into it and takes it out again: `node examples/create-bridge.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const bridge = rtnl.link.add({ kind: 'bridge', ifname: 'cbr0', up: true, bridge: { stpState: 0 } });
  const port = rtnl.link.add({ kind: 'veth', ifname: 'port0', master: bridge, peer: { ifname: 'far0' } });
  console.log(
    'ports:',
    rtnl.link
      .list({ master: bridge })
      .map((link) => link.ifname)
      .join(' '),
  );
  rtnl.link.set({ ifindex: port, master: 0 });
  console.log('ports afterwards:', rtnl.link.list({ master: bridge }).length);
});
