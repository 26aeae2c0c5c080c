import { gatewayPrefix, isOnBridge } from './bridge-violations.ts';
import type { JournalFacts, LeaseFacts } from './journal-facts.ts';
import { type PodFacts, readPodFacts } from './pod-facts.ts';

/** What a Pod is judged by, apart from its namespace. */
type PodScope = {
  readonly sandboxes?: readonly { readonly id: string; readonly netns?: string }[];
  readonly resolveNetns?: (path: string) => string;
};

/**
 * Looks into every Pod that the journal or the runtime knows: it has what its lease says; no address is on two Pods, on
 * one whose lease does not name it, or on any while it cools.
 */
export async function findPodViolations(scope: PodScope, journal: JournalFacts): Promise<readonly string[]> {
  const resolve = scope.resolveNetns ?? ((path: string) => path);
  const wired = journal.leases.filter((lease) => lease.plugin !== 'ipam');
  const paths = new Set(
    [...journal.leases, ...(scope.sandboxes ?? [])]
      .map(({ netns }) => (netns === undefined ? '' : resolve(netns)))
      .filter((path) => path !== ''),
  );
  const pods = new Map<string, PodFacts>();
  await Promise.all([...paths].map(async (path) => pods.set(path, await readPodFacts(path))));
  return [
    ...wired.flatMap((lease) => {
      const pod = pods.get(resolve(lease.netns));
      return pod === undefined ? [] : leaseViolations(lease, pod);
    }),
    ...ownerViolations([...pods.values()], journal, resolve),
  ];
}

function leaseViolations(lease: LeaseFacts, pod: PodFacts): readonly string[] {
  const where = `lease ${lease.key}: ${lease.ifName} in ${lease.netns}`;
  const link = pod.links.find(({ ifname }) => ifname === lease.ifName);
  if (link === undefined) return [`${where} is ${pod.isThere ? 'missing' : 'gone with its namespace'}`];
  const { nic } = lease;
  const sideMac = pod.links.find(({ ifname }) => ifname === 'veth0')?.mac;
  if (nic !== undefined && sideMac !== nic.sideMac) return [`${where}: veth0 has MAC ${sideMac}, not ${nic.sideMac}`];
  const side = lease.nic === undefined ? lease.ifName : 'veth0';
  const ofNic = nic?.gateways.map(
    (gateway) => `default${gateway.includes(':') ? '6' : ''} via ${gateway} dev ${lease.ifName}`,
  );
  const isKept = (line: string): boolean => nic === undefined || !line.startsWith('default');
  const ofSide = lease.ips.flatMap((ip) =>
    ip.includes(':')
      ? [`fe80::1 dev ${side} lladdr ${lease.hostVeth?.mac}`, `default6 via fe80::1 dev ${lease.ifName}`]
      : [
          `169.254.1.1 dev ${side} lladdr ${lease.hostVeth?.mac}`,
          `169.254.1.1 dev ${side}`,
          `default via 169.254.1.1 dev ${lease.ifName}`,
        ],
  );
  const wanted = isOnBridge(lease) ? [viaBridge(lease)] : [...ofSide.filter(isKept), ...(ofNic ?? [])];
  const held = [...pod.routes, ...pod.neighs];
  return [
    ...lease.ips
      .filter((ip) => !pod.addresses.includes(`${lease.ifName} ${ip}/${prefixLength(lease, ip)}`))
      .map((ip) => `${where} lacks ${ip}`),
    ...wanted.filter((line) => !held.includes(line)).map((line) => `${where} lacks: ${line}`),
    ...(link.isUp ? [] : [`${where} is down`]),
    ...(lease.podMac === undefined || lease.podMac === link.mac
      ? []
      : [`${where} has MAC ${link.mac}, not ${lease.podMac}`]),
    ...(link.mtu === lease.mtu ? [] : [`${where} has MTU ${link.mtu}, not ${lease.mtu}`]),
  ];
}

/** Judges whose an address is by where it is, not by what anybody wrote down. */
function ownerViolations(
  pods: readonly PodFacts[],
  journal: JournalFacts,
  resolve: (path: string) => string,
): readonly string[] {
  const found = pods.flatMap((pod) =>
    pod.addresses.map((line) => ({ path: pod.path, ip: line.split(/[ /]/)[1] ?? '' })),
  );
  return found.flatMap(({ path, ip }) => {
    const others = found.filter((other) => other.ip === ip && other.path !== path);
    const owner = journal.leases.find((lease) => lease.ips.includes(ip));
    return [
      ...others.map((other) => `address ${ip} is on two Pods: ${path} and ${other.path}`),
      ...(journal.cooling.includes(ip) ? [`address ${ip} is on the Pod ${path} and cools`] : []),
      ...(owner === undefined ? [`address ${ip} is on the Pod ${path} and in no lease`] : []),
      ...(owner !== undefined && resolve(owner.netns) !== path
        ? [`address ${ip} is on the Pod ${path}, the lease ${owner.key} says ${owner.netns}`]
        : []),
    ];
  });
}

function viaBridge({ ifName, block }: LeaseFacts): string {
  return `default via ${gatewayPrefix(block?.cidr ?? '').split('/')[0]} dev ${ifName}`;
}

/** The subnets of the small VPC are /24. A Pod on the bridge has the length of its block. */
function prefixLength(lease: LeaseFacts, ip: string): number {
  const { nic, block } = lease;
  if (ip.includes(':')) return 128;
  if (isOnBridge(lease)) return Number(block?.cidr.split('/')[1]);
  return nic === undefined ? 32 : 24;
}
