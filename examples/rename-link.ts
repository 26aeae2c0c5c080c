/** Changes the name, MAC, MTU, group and alias of a link: `node examples/rename-link.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const ifindex = rtnl.link.add({ kind: 'veth', ifname: 'old0', peer: { ifname: 'far0' } });
  rtnl.link.set({ ifindex, ifname: 'new0', address: '02:00:00:00:00:07', mtu: 1400, group: 4007, ifalias: 'mine' });
  const link = rtnl.link.get({ ifindex });
  console.log(link?.ifname, link?.address, link?.mtu, link?.group, link?.ifalias);
});
