import { BlockList } from 'node:net';
import { familyOf, prefixLength } from '../../../dataplane/ip-prefix.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NecAddress } from './build-address-index.ts';
import type { ClusterFacts, ClusterPod } from './cluster-facts.ts';

type Index = ReadonlyMap<string, readonly NecAddress[]>;

/**
 * Returns addresses on two ENIs, addresses of two Pods, and Pods with an address that is unlisted or of another node.
 */
export function findDuplicates(facts: ClusterFacts, index: Index): readonly Finding[] {
  return [...duplicateEntries(index), ...podFindings(facts, index)];
}

function duplicateEntries(index: Index): readonly Finding[] {
  return [...index].flatMap(([ip, holdings]) => {
    const [first, ...others] = holdings;
    if (first === undefined || others.length === 0) return [];
    const locations = holdings.map(
      ({ nodeName, eniId, isReleasing }) => `${eniId} of ${nodeName}${isReleasing ? ' (releasing)' : ''}`,
    );
    const firm = holdings.filter(({ isReleasing }) => !isReleasing);
    return [
      finding('address-on-two-enis', {
        what: `${ip} is on ${locations.join(' and ')}, by their NodeENIConfigs`,
        // While an address moves between two ENIs, both list it for a while.
        severity: firm.length > 1 ? 'error' : 'warning',
        fix: [`tke-eni cluster leaks --cloud shows to which ENI the cloud routes ${ip}`],
        subjects: [`address:${ip}`],
      }),
    ];
  });
}

function podFindings(facts: ClusterFacts, index: Index): readonly Finding[] {
  const pods = ifKnown(facts.pods);
  if (pods === undefined) return [];
  const isOurs = ourNetworks(facts);
  const byIp = new Map<string, ClusterPod[]>();
  const findings: Finding[] = [];
  for (const pod of pods) {
    for (const ip of pod.ips) {
      const all = index.get(ip) ?? [];
      const podEntries = all.filter(({ role }) => role !== 'own');
      if (all.length === 0 && !isOurs(ip, pod.nodeName)) continue;
      const there = byIp.get(ip);
      if (there === undefined) byIp.set(ip, [pod]);
      else there.push(pod);
      findings.push(...podAddressFindings(pod, ip, podEntries, all[0]));
    }
  }
  return [...findings, ...[...byIp].flatMap(([ip, owners]) => sharedAddress(ip, owners))];
}

function podAddressFindings(
  pod: ClusterPod,
  ip: string,
  entries: readonly NecAddress[],
  primary: NecAddress | undefined,
): readonly Finding[] {
  const subjects = [`pod:${pod.key}`, `address:${ip}`];
  const [namespace = '', name = ''] = pod.key.split('/');
  const deletePod = `kubectl -n ${namespace} delete pod ${name}`;
  if (entries.length === 0) {
    const whose =
      primary === undefined ? 'which no NodeENIConfig has' : `which is ${primary.eniId}'s own and for no Pod`;
    const what = `Pod ${pod.key} on ${pod.nodeName} has ${ip}, ${whose}`;
    return [
      finding('pod-address-unlisted', { what, fix: [`kubectl describe nec ${pod.nodeName}`, deletePod], subjects }),
    ];
  }
  if (entries.some(({ nodeName }) => nodeName === pod.nodeName)) return [];
  const locations = entries.map(({ nodeName, eniId }) => `${eniId} of ${nodeName}`).join(' and ');
  const what = `Pod ${pod.key} is on ${pod.nodeName}, its address ${ip} is on ${locations}`;
  return [finding('pod-address-elsewhere', { what, fix: [deletePod], subjects })];
}

function sharedAddress(ip: string, owners: readonly ClusterPod[]): readonly Finding[] {
  if (owners.length < 2) return [];
  const living = owners.filter(({ deletionRequestedMs }) => deletionRequestedMs === undefined);
  const names = owners.map(
    ({ key, nodeName, deletionRequestedMs }) =>
      `${key} on ${nodeName}${deletionRequestedMs === undefined ? '' : ' (leaving)'}`,
  );
  const youngest = owners.toSorted((a, b) => b.createdMs - a.createdMs)[0];
  const [namespace = '', name = ''] = (youngest?.key ?? '').split('/');
  return [
    finding('address-of-two-pods', {
      what: `${ip} is the address of ${names.join(' and ')}`,
      // A Pod of a deleted node keeps its address in its status until the Pod is deleted.
      severity: living.length > 1 ? 'error' : 'warning',
      fix: [`kubectl -n ${namespace} delete pod ${name}`],
      subjects: [`address:${ip}`, ...owners.map(({ key }) => `pod:${key}`)],
    }),
  ];
}

/**
 * Returns a check whether an address that no NodeENIConfig lists is one of ours. It is when it is in a subnet of our
 * ENIs and outside the Pod CIDR of the node's own bridge, or when a VpcIP records it. Other Pods on the same nodes may
 * have addresses of other networks.
 */
function ourNetworks(facts: ClusterFacts): (ip: string, nodeName: string) => boolean {
  const subnets = new BlockList();
  const infos = facts.necs.flatMap(({ status }) => status.eniInfos ?? []);
  const ofCloud = facts.cloud === undefined ? [] : (ifKnown(facts.cloud)?.subnets ?? []);
  const cidrs = [
    ...infos.flatMap(({ subnetCIDR, subnetIPv6CIDR }) => [subnetCIDR, subnetIPv6CIDR]),
    ...ofCloud.flatMap(({ cidr, cidrV6 }) => [cidr, cidrV6]),
  ];
  addAll(subnets, cidrs);
  // One list per node: a single list of thousands of networks would be searched for every Pod.
  const bridges = new Map((ifKnown(facts.nodes) ?? []).map(({ key, podCidrs }) => [key, podCidrs]));
  const recorded = new Set((ifKnown(facts.vips) ?? []).filter(({ isEnis }) => !isEnis).map(({ ip }) => ip));
  return (ip, nodeName) => {
    const isIn = subnets.check(ip, familyOf(ip) === 6 ? 'ipv6' : 'ipv4') || recorded.has(ip);
    return isIn && !isInside(ip, bridges.get(nodeName) ?? []);
  };
}

function isInside(ip: string, cidrs: readonly string[]): boolean {
  const list = new BlockList();
  addAll(list, cidrs);
  return list.check(ip, familyOf(ip) === 6 ? 'ipv6' : 'ipv4');
}

function addAll(list: BlockList, cidrs: readonly (string | undefined)[]): void {
  for (const cidr of new Set(cidrs.filter((one) => one !== undefined && one !== ''))) {
    const [network = ''] = (cidr ?? '').split('/');
    list.addSubnet(network, prefixLength(cidr ?? ''), familyOf(network) === 6 ? 'ipv6' : 'ipv4');
  }
}
