/** Lists links with what they are and whether they are up: `node examples/list-links.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { IFF_UP } from '../netlink/uapi/if-link.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  rtnl.link.add({ kind: 'veth', ifname: 'v0', up: true, peer: { ifname: 'v1' } });
  for (const link of rtnl.link.list()) {
    console.log(link.ifindex, link.ifname, link.kind ?? '-', (link.flags & IFF_UP) === 0 ? 'down' : 'up', link.mtu);
  }
});
