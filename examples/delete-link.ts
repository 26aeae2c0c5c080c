/** Deletes links without stopping the event loop, about 25 ms each in the kernel: `node examples/delete-link.ts`. */
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns(async (netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const indices = ['a', 'b', 'c'].map((name) =>
    rtnl.link.add({ kind: 'veth', ifname: name, peer: { ifname: `${name}-far` } }),
  );
  await Promise.all(indices.map((ifindex) => rtnl.link.deleteInBackground(ifindex)));
  console.log(
    'left:',
    rtnl.link
      .list()
      .map((link) => link.ifname)
      .join(' '),
  );
});
