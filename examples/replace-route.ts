/** Exchanges a route without a moment in which there is none: `node examples/replace-route.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { AF_INET } from '../netlink/uapi/netlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const first = rtnl.link.add({ kind: 'veth', ifname: 'a0', up: true, peer: { ifname: 'a1' } });
  const second = rtnl.link.add({ kind: 'veth', ifname: 'b0', up: true, peer: { ifname: 'b1' } });
  rtnl.route.replace({ dst: '10.0.1.50/32', oif: first, table: 3999 });
  rtnl.route.replace({ dst: '10.0.1.50/32', oif: second, table: 3999 });
  const routes = rtnl.route.list({ family: AF_INET, table: 3999 });
  console.log(routes.length, 'route, by', routes[0]?.oif === second ? 'b0' : 'a0');
});
