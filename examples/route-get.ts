/** Asks which way a packet would go, and which route says so: `node examples/route-get.ts`. */
import { isNetlinkError } from '../netlink/netlink-error.ts';
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { AF_INET } from '../netlink/uapi/netlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const oif = rtnl.link.add({ kind: 'veth', ifname: 'v0', up: true, peer: { ifname: 'v1' } });
  rtnl.route.add({ dst: '10.0.0.0/16', oif, table: 4007 });
  rtnl.rule.add({ family: AF_INET, fwmark: 0x50000, table: 4007, priority: 1536 });
  console.log('marked:  ', rtnl.route.get({ dst: '10.0.1.50', mark: 0x50000, fibmatch: true }).dst);
  try {
    rtnl.route.get({ dst: '10.0.1.50' });
  } catch (error) {
    if (!isNetlinkError(error, 'ENETUNREACH')) {
      throw error;
    }
    console.log('unmarked:', error.message);
  }
});
