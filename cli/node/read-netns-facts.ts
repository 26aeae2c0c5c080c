import { type Netns, withNetns } from '../../netlink/netns.ts';
import { openRtnetlink, type Rtnetlink } from '../../netlink/rtnetlink.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import type { NetnsFacts } from './node-facts.ts';
import { readSysctls } from './read-sysctls.ts';

/** What to leave out of a reading. */
export type NetnsReading = {
  /** False: none is read, which saves a file for each setting of each interface. Default true. */
  readonly sysctls?: boolean;
};

/**
 * Reads what the kernel holds of `netns`, or of the namespace of now. Each table is read at its own moment: what changes
 * meanwhile may show in one and not in the other.
 * @throws NetlinkError, LibcError, NetnsError (EPERM without CAP_SYS_ADMIN)
 */
export function readNetnsFacts(netns?: Netns, reading: NetnsReading = {}): NetnsFacts {
  const read = (): NetnsFacts => {
    using rtnetlink = openRtnetlink();
    const dumps = readDumps(rtnetlink);
    const names = dumps.links.map(({ ifname }) => ifname);
    return { ...dumps, sysctls: reading.sysctls === false ? new Map() : readSysctls(names) };
  };
  return netns === undefined ? read() : withNetns(netns, read);
}

function readDumps(rtnetlink: Rtnetlink): Omit<NetnsFacts, 'sysctls'> {
  const families = [AF_INET, AF_INET6];
  return {
    links: rtnetlink.link.list(),
    addresses: rtnetlink.address.list(),
    routes: families.flatMap((family) => rtnetlink.route.list({ family })),
    rules: families.flatMap((family) => rtnetlink.rule.list({ family })),
    neighs: rtnetlink.neigh.list(),
  };
}
