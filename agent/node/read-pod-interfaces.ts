import { fstatSync } from 'node:fs';
import { TABLE_MAIN } from '../../dataplane/numbers.ts';
import { NetnsError, openNetns } from '../../netlink/netns.ts';
import { openRtnetlinkIn, type Rtnetlink } from '../../netlink/rtnetlink.ts';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import type { NetnsEvidence, PodInterface } from './bridge-evidence.ts';
import { namesOfNetns } from './read-sandbox-peers.ts';

/**
 * Reads the veth interfaces with an IPv4 address in the namespaces that the runtime names, and in all of `/run/netns`.
 * A namespace with two names is read once, under its first. Synchronous, so that no ADD or DEL comes between. Changes
 * nothing.
 */
export function readPodInterfaces(hostRoot: string, named: Iterable<string>): NetnsEvidence {
  const interfaces: PodInterface[] = [];
  const seen = new Set<string>();
  let isComplete = true;
  for (const path of [...named, ...namesOfNetns(hostRoot)]) {
    try {
      using netns = openNetns(resolveHostPath(hostRoot, path));
      const { dev, ino } = fstatSync(netns.fd);
      if (seen.has(`${dev} ${ino}`)) continue;
      seen.add(`${dev} ${ino}`);
      using rtnetlink = openRtnetlinkIn(netns);
      interfaces.push(...interfacesIn(rtnetlink, path));
    } catch (error) {
      // It was deleted meanwhile: then nothing is in it.
      const isGone = error instanceof NetnsError && (error.code === 'ENOENT' || error.code === 'NOT_A_NETNS');
      if (!isGone) isComplete = false;
    }
  }
  return { interfaces, isComplete };
}

function interfacesIn(rtnetlink: Rtnetlink, netns: string): readonly PodInterface[] {
  return rtnetlink.link.list({ kind: 'veth' }).flatMap((link): readonly PodInterface[] => {
    const addresses = rtnetlink.address
      .list({ ifindex: link.ifindex, family: AF_INET })
      .map(({ local, address, prefixlen }) => ({ ip: local ?? address, prefixLength: prefixlen }));
    if (addresses.length === 0 || link.link === undefined) return [];
    const gateway = rtnetlink.route
      .list({ family: AF_INET, table: TABLE_MAIN })
      .find(({ dst, oif }) => oif === link.ifindex && (dst === undefined || dst.endsWith('/0')))?.gateway;
    const { ifname: ifName, ifindex, address: mac = '', link: peerIfindex } = link;
    return [{ netns, ifName, ifindex, mac, peerIfindex, addresses, ...(gateway === undefined ? {} : { gateway }) }];
  });
}
