/** Makes a veth pair whose other end is born in another namespace, in one request: `node examples/create-veth.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns(async (host) => {
  await inOwnNetns((pod) => {
    using rtnl = openRtnetlinkIn(host);
    const ifindex = rtnl.link.add({
      kind: 'veth',
      ifname: 'eni0',
      address: '02:00:00:00:00:01',
      mtu: 1400,
      up: true,
      peer: { ifname: 'eth0', address: '02:00:00:00:00:02', mtu: 1400, netns: pod },
    });
    using inPod = openRtnetlinkIn(pod);
    console.log('here: ', rtnl.link.get({ ifindex })?.ifname, rtnl.link.get({ ifindex })?.address);
    console.log('there:', inPod.link.get({ ifname: 'eth0' })?.ifname, inPod.link.get({ ifname: 'eth0' })?.address);
  });
});
