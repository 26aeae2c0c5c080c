/** Gives an interface addresses of both families: `node examples/add-address.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { IFA_F_NODAD } from '../netlink/uapi/if-addr.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const ifindex = rtnl.link.add({ kind: 'veth', ifname: 'v0', up: true, peer: { ifname: 'v1' } });
  rtnl.address.replace({ ifindex, address: '10.0.1.50', prefixlen: 32 });
  rtnl.address.replace({ ifindex, address: 'fd00::50', prefixlen: 128, flags: IFA_F_NODAD });
  for (const address of rtnl.address.list({ ifindex })) {
    console.log(`${address.address}/${address.prefixlen}`);
  }
});
