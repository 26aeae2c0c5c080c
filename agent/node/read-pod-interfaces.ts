import { POD_GATEWAY_IPV4, POD_GATEWAY_IPV6, TABLE_MAIN } from '../../dataplane/numbers.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import { NetnsError } from '../../netlink/netns.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import type { NetnsEvidence, PodInterface } from './bridge-evidence.ts';
import type { PodEnd } from './kernel-evidence.ts';
import type { Namespaces } from './namespaces.ts';
import { globalIpsOf } from './read-sandbox-peers.ts';

/**
 * Reads the veth interfaces with an IPv4 address in the namespaces that the runtime names, and in all of `/run/netns`.
 * A namespace with two names is read once, under its first. Synchronous, so that no ADD or DEL comes between. Changes
 * nothing.
 */
export function readPodInterfaces(namespaces: Namespaces, named: Iterable<string>): NetnsEvidence {
  const { found, isComplete } = readEachNetns(namespaces, named, interfacesIn);
  return { interfaces: found, isComplete };
}

/**
 * Reads every veth in the namespaces that the runtime names, and in all of `/run/netns`, as `readPodInterfaces` does, with
 * what adoption tells a Pod's end by. What cannot be read is no evidence.
 */
export function readPodEnds(namespaces: Namespaces, named: Iterable<string>): readonly PodEnd[] {
  return readEachNetns(namespaces, named, endsIn).found;
}

function readEachNetns<T>(
  namespaces: Namespaces,
  named: Iterable<string>,
  read: (rtnetlink: Rtnetlink, netns: string) => readonly T[],
): { readonly found: readonly T[]; readonly isComplete: boolean } {
  const found: T[] = [];
  const seen = new Set<string>();
  let isComplete = true;
  for (const path of [...named, ...namespaces.named()]) {
    try {
      using netns = namespaces.open(path);
      const identity = namespaces.identityOf(netns);
      if (seen.has(identity)) continue;
      seen.add(identity);
      using inside = namespaces.enter(netns);
      found.push(...read(inside.rtnetlink, path));
    } catch (error) {
      // It was deleted meanwhile: then nothing is in it.
      const isGone = error instanceof NetnsError && (error.code === 'ENOENT' || error.code === 'NOT_A_NETNS');
      if (!isGone) isComplete = false;
    }
  }
  return { found, isComplete };
}

function endsIn(rtnetlink: Rtnetlink, netns: string): readonly PodEnd[] {
  const links = rtnetlink.link.list({ kind: 'veth' });
  const routes = links.length === 0 ? [] : [AF_INET, AF_INET6].flatMap((family) => rtnetlink.route.list({ family }));
  return links.flatMap(({ ifname: ifName, ifindex, address: mac = '', link: peerIfindex }): readonly PodEnd[] => {
    if (peerIfindex === undefined) return [];
    const neighMacs = rtnetlink.neigh.list({ ifindex }).flatMap(({ lladdr }) => lladdr ?? []);
    const hasGateway = routes.some(
      ({ oif, gateway }) => oif === ifindex && (gateway === POD_GATEWAY_IPV4 || gateway === POD_GATEWAY_IPV6),
    );
    return [{ netns, ifName, ifindex, peerIfindex, mac, ips: globalIpsOf(rtnetlink, ifindex), neighMacs, hasGateway }];
  });
}

function interfacesIn(rtnetlink: Rtnetlink, netns: string): readonly PodInterface[] {
  return rtnetlink.link.list({ kind: 'veth' }).flatMap((link): readonly PodInterface[] => {
    const addresses = rtnetlink.address
      .list({ ifindex: link.ifindex, family: AF_INET })
      .map((message) => ({ ip: ownAddress(message), prefixLength: message.prefixlen }));
    if (addresses.length === 0 || link.link === undefined) return [];
    const gateway = rtnetlink.route
      .list({ family: AF_INET, table: TABLE_MAIN })
      .find(({ dst, oif }) => oif === link.ifindex && (dst === undefined || dst.endsWith('/0')))?.gateway;
    const { ifname: ifName, ifindex, address: mac = '', link: peerIfindex } = link;
    return [{ netns, ifName, ifindex, mac, peerIfindex, addresses, ...(gateway === undefined ? {} : { gateway }) }];
  });
}
