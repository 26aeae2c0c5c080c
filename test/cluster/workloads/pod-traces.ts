import { existsSync, readdirSync } from 'node:fs';
import { TABLE_PODLESS } from '../../../dataplane/numbers.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import type { VpcCloud } from '../../system/vpc-cloud.ts';
import type { ClusterNode } from '../cluster-node.ts';
import { journalOf } from '../node-facts.ts';

/** What Pods leave on a node while they are there, each list sorted; told by iproute2, nft and the file system. */
export type PodTraces = {
  /** Links that are no NIC of the instance. */
  readonly links: readonly string[];
  /** Routes of any table to, and rules from or to, an address of a subnet for Pods that is no NIC's own. */
  readonly routes: readonly string[];
  readonly rules: readonly string[];
  /** Elements of nftables' sets and maps, and rules of any table, with such an address or such a link in it. */
  readonly nft: readonly string[];
  readonly neighbours: readonly string[];
  readonly leases: readonly string[];
  readonly namespaces: readonly string[];
  /** What CNI plugins and their library keep on disk. */
  readonly files: readonly string[];
};

/** Reads what Pods have left on a node. */
export async function readPodTraces(node: ClusterNode, cloud: VpcCloud): Promise<PodTraces> {
  const nics = await nicMacs(node, cloud);
  const [links, routes, rules, neighbours, ruleset] = await Promise.all([
    node.ns.ipJson('link'),
    node.ns.ipJson('-N', 'route', 'show', 'table', 'all'),
    node.ns.ipJson('-N', 'rule'),
    node.ns.ipJson('neigh'),
    node.ns.nftJson('ruleset'),
  ]);
  const podLinks = links.filter(({ address, ifname }) => !nics.has(String(address)) && ifname !== 'lo');
  const names = podLinks.map(({ ifname }) => String(ifname));
  const isOfPods = (thing: JsonObject) => names.includes(String(thing['dev'])) || isPodAddress(cloud, thing);
  return {
    links: names.sort(),
    routes: linesOf(routes.filter((route) => (isOfPods(route) && !isRefusal(route)) || route['table'] === '3999')),
    rules: linesOf(rules.filter((rule) => isPodAddress(cloud, rule))),
    nft: (ruleset ?? [])
      .map((one) => JSON.stringify(one))
      .filter((text) => names.some((name) => text.includes(name)) || addressesIn(text).some((ip) => isOfPod(cloud, ip)))
      .sort(),
    neighbours: linesOf(neighbours.filter((one) => names.includes(String(one['dev'])))),
    leases: journalOf(node)
      .leases.map((lease) => JSON.stringify(lease))
      .sort(),
    namespaces: filesOf(node, '/run/netns').filter((name) => name.startsWith('cni-')),
    files: ['/var/lib/cni/results', '/var/lib/cni/networks', '/run/tke-eni/deletions'].flatMap((path) =>
      filesOf(node, path).map((name) => `${path}/${name}`),
    ),
  };
}

/** Reports whether a route refuses packets to an address of the node; it is there with a Pod and without one. */
function isRefusal({ table }: JsonObject): boolean {
  return table === String(TABLE_PODLESS);
}

async function nicMacs(node: ClusterNode, { vpc }: VpcCloud): Promise<ReadonlySet<string>> {
  const enis = await Promise.all(vpc.enisOf(node.name).map((eniId) => vpc.eni(eniId)));
  return new Set([vpc.node(node.name).primary.mac, ...enis.map(({ mac }) => mac)]);
}

function isPodAddress(cloud: VpcCloud, thing: JsonObject): boolean {
  return ['dst', 'src'].some((end) => addressesIn(String(thing[end] ?? '')).some((ip) => isOfPod(cloud, ip)));
}

/** Addresses of Pods are secondary ones of ENIs. */
function isOfPod({ vpc }: VpcCloud, ip: string): boolean {
  const eniId = vpc.eniOf(ip);
  return eniId !== undefined && !eniId.includes('/') && vpc.assignedIps(eniId).some((assigned) => assigned.ip === ip);
}

function addressesIn(text: string): readonly string[] {
  return text.match(/\b\d+\.\d+\.\d+\.\d+\b/g) ?? [];
}

function linesOf(objects: readonly JsonObject[]): readonly string[] {
  return objects
    .filter(isObject)
    .map((one) => JSON.stringify(one))
    .sort();
}

function filesOf(node: ClusterNode, path: string): readonly string[] {
  const folder = node.machine.insidePath(path);
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}
