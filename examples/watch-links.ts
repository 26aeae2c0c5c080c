/** Waits for links to come and go: `node examples/watch-links.ts`. */
import { openMonitorIn } from '../netlink/monitor.ts';
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns(async (netns) => {
  using monitor = openMonitorIn(netns, { groups: ['link'] });
  using rtnl = openRtnetlinkIn(netns);
  const ifindex = rtnl.link.add({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v1' } });
  rtnl.link.delete({ ifindex });
  for await (const event of monitor) {
    if (event.kind === 'overrun') {
      console.log('events were lost: read all links again', rtnl.link.list().length);
    } else if (event.kind === 'link') {
      console.log(event.op, event.message.ifname);
      if (event.op === 'del' && event.message.ifname === 'v0') {
        break;
      }
    }
  }
});
