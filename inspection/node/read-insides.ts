import { readdirSync } from 'node:fs';
import { ownAddress } from '../../netlink/address-message.ts';
import { LibcError } from '../../netlink/errno.ts';
import { NetlinkError } from '../../netlink/netlink-error.ts';
import { NetnsError, openNetns } from '../../netlink/netns.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import type { PodLink } from './find-pod-links.ts';
import { ifKnown, known, unknown } from './known.ts';
import type { HostFacts, Known, NetnsFacts } from './node-facts.ts';
import { type NetnsReading, readNetnsFacts } from './read-netns-facts.ts';

/** Folder where runtimes and `ip netns` bind network namespaces to names. */
const NETNS_FOLDER = '/run/netns';

/** Options for reading the namespaces of Pods. */
type InsideReading = NetnsReading & { readonly hostRoot: string };

/**
 * Returns the function that reads a Pod's namespace: by the path in its lease, or, without a lease, the namespace in
 * `/run/netns` with the other end of its veth. Changes nothing; what cannot be read is returned as unknown.
 */
export function insideReader(
  host: Pick<HostFacts, 'links' | 'routes'>,
  reading: InsideReading,
): (pod: PodLink) => Known<NetnsFacts> {
  let named: readonly NamedInside[] | undefined;
  return (pod) => {
    const lease = ifKnown(pod.lease);
    if (lease !== undefined) return readInside(lease.netns, reading);
    named ??= readNamedInsides(reading);
    return findInside(pod, host, named);
  };
}

/** Reads one namespace by the path that the runtime gave it. */
export function readInside(path: string, reading: InsideReading): Known<NetnsFacts> {
  if (path === '') return unknown('its network namespace is not recorded', 'look for its sandbox with crictl pods');
  try {
    using netns = openNetns(resolveHostPath(reading.hostRoot, path));
    return known(readNetnsFacts(netns, reading));
  } catch (error) {
    return whyUnreadable(path, error);
  }
}

type NamedInside = { readonly path: string; readonly facts: NetnsFacts };

function readNamedInsides(reading: InsideReading): readonly NamedInside[] {
  return netnsNames(reading.hostRoot).flatMap((name) => {
    const path = `${NETNS_FOLDER}/${name}`;
    const facts = ifKnown(readInside(path, reading));
    return facts === undefined ? [] : [{ path, facts }];
  });
}

/** Lists the names as `ip netns` does; empty when the folder does not exist. */
export function netnsNames(hostRoot: string): readonly string[] {
  try {
    return readdirSync(resolveHostPath(hostRoot, NETNS_FOLDER)).sort();
  } catch {
    return [];
  }
}

function findInside(
  pod: PodLink,
  host: Pick<HostFacts, 'links' | 'routes'>,
  named: readonly NamedInside[],
): Known<NetnsFacts> {
  const veth = host.links.find(({ ifindex }) => ifindex === pod.hostIfindex);
  const ifName = pod.key.slice(pod.key.indexOf('/') + 1);
  const addresses = host.routes
    .filter(({ oif, dst }) => oif === pod.hostIfindex && dst !== undefined)
    .map(({ dst }) => dst?.split('/')[0]);
  // Each namespace numbers its links from one: equal indexes alone prove nothing.
  const candidates = named.flatMap(({ facts }) => {
    const link = facts.links.find(({ ifname, link: peer }) => ifname === ifName && peer === veth?.ifindex);
    return link === undefined ? [] : [{ facts, ifindex: link.ifindex }];
  });
  const byGateway = candidates.find(({ facts, ifindex }) =>
    facts.neighs.some((neigh) => neigh.ifindex === ifindex && neigh.lladdr === veth?.address),
  );
  const byAddress = candidates.filter(({ facts, ifindex }) =>
    facts.addresses.some((address) => address.ifindex === ifindex && addresses.includes(ownAddress(address))),
  );
  // A MAC is random and decides alone. An address may also exist on another node, where several nodes run on one
  // machine.
  const found = byGateway ?? (byAddress.length === 1 ? byAddress[0] : undefined);
  return found === undefined
    ? unknown(
        'without a journal its namespace was not found in /run/netns',
        'run as root on the host, or start the agent',
      )
    : known(found.facts);
}

function whyUnreadable(path: string, error: unknown): Known<never> {
  const code = error instanceof NetnsError || error instanceof LibcError ? error.code : undefined;
  if (code === 'ENOENT') {
    return unknown(
      `its namespace ${path} is gone`,
      'the runtime took the sandbox down: DEL or the agent’s GC will follow',
    );
  }
  if (code === 'NOT_A_NETNS') {
    return unknown(`its namespace ${path} was unmounted`, 'crictl pods shows whether its sandbox lives');
  }
  if (code === 'EPERM' || code === 'EACCES') {
    return unknown('only root can look into Pods', 'run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN');
  }
  if (error instanceof NetnsError || error instanceof LibcError || error instanceof NetlinkError) {
    return unknown(`its namespace ${path} cannot be read: ${error.message}`, 'look for its sandbox with crictl pods');
  }
  throw error;
}
