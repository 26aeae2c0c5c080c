/** Moves a link into another namespace and renames it on the way: `node examples/move-link.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns(async (host) => {
  await inOwnNetns((pod) => {
    using rtnl = openRtnetlinkIn(host);
    const ifindex = rtnl.link.add({ kind: 'veth', ifname: 'nic0', peer: { ifname: 'wire0' } });
    rtnl.link.set({ ifindex, netns: pod, ifname: 'eth0' });
    using inPod = openRtnetlinkIn(pod);
    console.log('here: ', rtnl.link.get({ ifname: 'nic0' })?.ifname ?? 'gone');
    console.log('there:', inPod.link.get({ ifname: 'eth0' })?.ifname);
  });
});
