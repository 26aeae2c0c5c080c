/** Pins a neighbour, as a Pod's gateway is pinned, and lists what is known: `node examples/list-neighbours.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { NUD_PERMANENT } from '../netlink/uapi/neighbour.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const ifindex = rtnl.link.add({ kind: 'veth', ifname: 'v0', up: true, peer: { ifname: 'v1' } });
  rtnl.neigh.replace({ ifindex, dst: '169.254.1.1', lladdr: '02:00:00:00:00:01' });
  for (const neigh of rtnl.neigh.list({ ifindex })) {
    console.log(neigh.dst, neigh.lladdr ?? '-', neigh.state === NUD_PERMANENT ? 'permanent' : neigh.state);
  }
});
