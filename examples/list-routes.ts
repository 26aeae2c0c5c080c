/** Lists the routes of one table, filtered by the kernel: `node examples/list-routes.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { AF_INET } from '../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK } from '../netlink/uapi/rtnetlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const oif = rtnl.link.add({ kind: 'veth', ifname: 'v0', up: true, peer: { ifname: 'v1' } });
  for (const last of [50, 51, 52]) {
    rtnl.route.add({ dst: `10.0.1.${last}/32`, oif, table: 3999, protocol: 84, scope: RT_SCOPE_LINK });
  }
  for (const route of rtnl.route.list({ family: AF_INET, table: 3999 })) {
    console.log(route.dst ?? 'default', 'dev', route.oif, 'proto', route.protocol);
  }
  console.log('a table that was never used:', rtnl.route.list({ family: AF_INET, table: 12345 }).length);
});
