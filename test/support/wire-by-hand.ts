import type { NetnsView } from '../../sim/support/netns.ts';
import type { AttachedEni } from '../../sim/vpc/nic.ts';
import type { TestNode } from '../../sim/vpc/vpc.ts';

/** One Pod to be wired by hand. */
type HandWiredPod = { readonly netns: NetnsView; readonly ip: string; readonly hostVeth: string };

/** Number of the by-hand ENI's table; any that nothing else uses. */
const tableOf = (eni: AttachedEni): string => `${100 + Number(eni.ifname.slice(3))}`;

/** Sets an ENI up with `ip` commands, the way the product documents it: judge of the VPC, no code of ours involved. */
export async function setUpEniByHand(node: TestNode, eni: AttachedEni): Promise<void> {
  const table = tableOf(eni);
  await node.netns.sysctl({
    'net/ipv4/ip_forward': 1,
    [`net/ipv4/conf/${eni.ifname}/rp_filter`]: 2,
    'net/ipv4/conf/eth0/rp_filter': 2,
    'net/ipv6/conf/all/forwarding': 1,
  });
  const v6 =
    eni.primaryIpv6 === undefined
      ? []
      : [
          `address add ${eni.primaryIpv6}/128 dev ${eni.ifname} nodad`,
          `route add ${eni.gatewayV6}/128 dev ${eni.ifname} table ${table}`,
          `route add default via ${eni.gatewayV6} dev ${eni.ifname} table ${table}`,
        ];
  await node.netns.ipBatch([
    `link set ${eni.ifname} up`,
    `address add ${eni.primaryIp}/32 dev ${eni.ifname}`,
    `route add ${eni.gateway}/32 dev ${eni.ifname} scope link table ${table}`,
    `route add default via ${eni.gateway} dev ${eni.ifname} table ${table}`,
    ...v6,
  ]);
}

/** Wires one Pod with `ip` commands: veth, host route, and the two rules of the product's layout. */
export async function wirePodByHand(node: TestNode, eni: AttachedEni, pod: HandWiredPod): Promise<void> {
  const isV6 = pod.ip.includes(':');
  const prefix = `${pod.ip}/${isV6 ? 128 : 32}`;
  const gateway = isV6 ? 'fe80::1' : '169.254.1.1';
  const nodad = isV6 ? ' nodad' : '';
  await node.netns.ipBatch([
    `link add ${pod.hostVeth} address 0a:58:00:00:00:01 type veth peer name eth0 netns ${pod.netns.name}`,
    `link set ${pod.hostVeth} up`,
    `route add ${prefix} dev ${pod.hostVeth}`,
  ]);
  await node.netns.ipBatch(
    [`rule add to ${prefix} lookup main pref 512`, `rule add from ${prefix} lookup ${tableOf(eni)} pref 1536`],
    isV6 ? 6 : 4,
  );
  await pod.netns.ipBatch([
    'link set lo up',
    'link set eth0 up',
    `address add ${prefix} dev eth0${nodad}`,
    ...(isV6 ? [] : [`route add ${gateway} dev eth0 scope link`]),
    `route add default via ${gateway} dev eth0`,
    `neigh add ${gateway} lladdr 0a:58:00:00:00:01 dev eth0 nud permanent`,
  ]);
}
