import type { NetnsRef } from '../netlink/link-message.ts';
import { withNetns } from '../netlink/netns.ts';
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { openSysctl } from '../sysctl/sysctl.ts';
import type { InNetns } from './kernel.ts';
import { readPacketLinks } from './read-packet-links.ts';

/** Opens a network namespace of this machine; the caller must close it. @throws NetnsError, LibcError */
export function enterNetns(netns: NetnsRef): InNetns {
  const rtnetlink = openRtnetlinkIn(netns);
  return {
    rtnetlink,
    sysctl: openSysctl(netns),
    packetLinks: () => withNetns(netns, readPacketLinks),
    [Symbol.dispose]: () => rtnetlink.close(),
  };
}
