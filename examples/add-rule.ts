/** Adds policy rules by source and by mark, and meets one that is there already: `node examples/add-rule.ts`. */
import { isNetlinkError } from '../netlink/netlink-error.ts';
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { AF_INET } from '../netlink/uapi/netlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  rtnl.rule.add({ src: '10.0.1.50/32', table: 4007, priority: 1537, protocol: 84 });
  rtnl.rule.add({ family: AF_INET, fwmark: 0x50000, fwmask: 0xff0000, table: 4007, priority: 1536, protocol: 84 });
  try {
    rtnl.rule.add({ src: '10.0.1.50/32', table: 4007, priority: 1537, protocol: 84 });
  } catch (error) {
    if (!isNetlinkError(error, 'EEXIST')) {
      throw error;
    }
    console.log(error.message);
  }
  for (const rule of rtnl.rule.list({ family: AF_INET, protocol: 84 })) {
    console.log(rule.priority, rule.src ?? 'all', rule.fwmark ?? '-', '->', rule.table);
    rtnl.rule.delete(rule);
  }
});
