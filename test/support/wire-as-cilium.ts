import { randomBytes } from 'node:crypto';
import type { NetnsView } from '../../sim/support/netns.ts';

/** Addresses of one Pod, one of a family each. */
type CiliumIps = readonly string[];

/** What Cilium changes on a node before it has a Pod. */
const NODE_RULES = [
  'rule add pref 100 lookup local',
  'rule del pref 0',
  'rule add pref 9 fwmark 0x200/0xf00 lookup 2004',
];

/**
 * Prepares a node as Cilium's agent does in IPAM mode crd: `cilium_host` has the address of the owner `router`, the rule
 * of the table local goes from 0 to 100, and the rule of its proxy is at 9.
 */
export async function prepareAsCilium(node: NetnsView, router: CiliumIps): Promise<void> {
  await node.ipBatch([
    'link add cilium_host type veth peer name cilium_net',
    'link set cilium_net up',
    'link set cilium_host up',
    ...router.map((ip) => `address add ${hostPrefix(ip)} dev cilium_host${ip.includes(':') ? ' nodad' : ''}`),
    'route add local default dev lo table 2004',
  ]);
  await node.ipBatch(NODE_RULES);
  await node.ipBatch(NODE_RULES.slice(0, 2), 6);
}

/**
 * Wires a Pod as cilium-cni does, with endpoint routes: a veth pair `lxc…`, in the table main a host route of protocol
 * kernel, in the Pod a default route by the router's address. Cilium's program on the link answers for that address;
 * here a permanent neighbour does. Returns the name of the host's link.
 */
export async function wireAsCilium(
  node: NetnsView,
  pod: NetnsView,
  ips: CiliumIps,
  router: CiliumIps,
): Promise<string> {
  const lxc = `lxc${randomBytes(6).toString('hex')}`;
  const mac = '0a:58:00:00:00:0c';
  await node.ipBatch([`link add ${lxc} address ${mac} type veth peer name eth0 netns ${pod.name}`]);
  await node.sysctl({ [`net/ipv4/conf/${lxc}/rp_filter`]: 0, [`net/ipv6/conf/${lxc}/accept_dad`]: 0 });
  await node.ipBatch([
    `link set ${lxc} up`,
    ...ips.map(
      (ip) => `route replace ${hostPrefix(ip)} dev ${lxc} proto kernel${ip.includes(':') ? '' : ' scope link'}`,
    ),
  ]);
  await pod.ipBatch([
    'link set lo up',
    'link set eth0 up',
    ...ips.map((ip) => `address add ${hostPrefix(ip)} dev eth0${ip.includes(':') ? ' nodad' : ''}`),
    ...router.flatMap((ip) => [
      `route add ${hostPrefix(ip)} dev eth0${ip.includes(':') ? '' : ' scope link'}`,
      `route add default via ${ip} dev eth0`,
      `neigh add ${ip} lladdr ${mac} dev eth0 nud permanent`,
    ]),
  ]);
  return lxc;
}

function hostPrefix(ip: string): string {
  return `${ip}/${ip.includes(':') ? 128 : 32}`;
}
