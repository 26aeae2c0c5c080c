import { applyOperations } from '../../dataplane/apply.ts';
import type { HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { hostVethAlias, hostVethFallbackName } from '../../dataplane/host-veth-name.ts';
import type { NodeKernel } from '../../dataplane/kernel.ts';
import type { EniNetwork, EniPodNetwork, NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { observeHost } from '../../dataplane/observe.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { wirePod } from '../../dataplane/wire-pod.ts';
import { IFA_F_NODAD } from '../../netlink/uapi/if-addr.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { acceptDad } from '../../sysctl/sysctl-key.ts';
import type { ContractMachine, ContractNetns } from './machine.ts';

/** A node in the host's namespace: eth0 is the primary, eth5 and eth6 are ENIs; their other ends are up and answer nothing. */
export type ContractNode = {
  readonly kernel: NodeKernel;
  readonly network: NodeNetwork;
  readonly enis: readonly [EniNetwork, EniNetwork];
  /** Observes, compares and applies, as repair does; returns the lines of what it changed. */
  reach(desired: HostState): Promise<readonly string[]>;
  /** Wires a Pod; returns it with the name and the number of its link. */
  wire<Pod extends PodNetwork>(netns: ContractNetns, pod: Pod, network?: NodeNetwork): Pod;
  /** Routes of ours and all rules, a line each. */
  traces(): readonly string[];
};

const NETWORK: NodeNetwork = {
  ...{ ruleMode: 'compact', eniMarkMask: 0x00ff0000, rpFilterMode: 'loose', egress: 'eni' },
  primary: { ifindex: 20, ifname: 'eth0', addresses: ['10.0.0.2', 'fd00:10::2'] },
  ...{ podCidrs: [podCidrOf('172.31.0.0/24')], families: [4, 6], nodePort: true },
  vpcCidrs: ['10.0.0.0/8', 'fd00:10::/32'],
};

/** Makes the node of a machine. */
export function makeNode({ host, createNetns, enter, finish }: ContractMachine): ContractNode {
  const far = createNetns();
  for (const { sysctl } of [host, far]) sysctl.set(acceptDad('default'), '0');
  const { link, address, route } = host.rtnetlink;
  link.set({ ifindex: 1, up: true });
  for (const n of [0, 5, 6]) {
    const peer = { ifname: `far${n}`, ifindex: 40 + n, address: macOf(0xf0 + n), netns: far };
    link.add({ kind: 'veth', ifname: `eth${n}`, ifindex: 20 + n, address: macOf(n), peer });
    far.rtnetlink.link.set({ ifindex: 40 + n, up: true });
  }
  link.set({ ifindex: 20, up: true });
  address.add({ ifindex: 20, address: '10.0.0.2', prefixlen: 24 });
  address.add({ ifindex: 20, address: 'fd00:10::2', prefixlen: 64, flags: IFA_F_NODAD });
  route.add({ family: AF_INET, gateway: '10.0.0.1', oif: 20 });
  const kernel: NodeKernel = { rtnetlink: host.rtnetlink, sysctl: host.sysctl, nft: host.nft, enter };
  return {
    ...{ kernel, network: NETWORK, enis: [eniOf(5), eniOf(6)] },
    reach: (desired) => finish(reach(kernel, desired)),
    wire: (netns, pod, node = NETWORK) => {
      const wired = wirePod(kernel, netns, { node, pod, fallbackName: hostVethFallbackName(pod.key) });
      return { ...pod, hostVeth: { ...pod.hostVeth, name: wired.hostName, ifindex: wired.hostIfindex } };
    },
    traces: () =>
      [AF_INET, AF_INET6].flatMap((family) => [
        ...host.rtnetlink.route
          .list({ family, protocol: 84 })
          .map(({ table, dst, oif, priority, type }) => `${table} ${dst} ${oif} ${priority} ${type}`),
        ...host.rtnetlink.rule
          .list({ family })
          .map(({ priority, table, src, dst, fwmark }) => `${priority} ${table} ${src} ${dst} ${fwmark}`),
      ]),
  };
}

/** A Pod that is not wired yet; `id` is its number in names and MACs. */
export function podOf(ips: readonly string[], id = 1, more: Partial<EniPodNetwork> = {}): EniPodNetwork {
  const key = { containerId: `c0ffee${id}`, ifName: 'eth0' };
  return {
    ...{ key, kind: 'route-eni', ips, eniTable: 4025, mtu: 1400, alias: hostVethAlias(key) },
    hostVeth: { name: hostVethFallbackName(key), mac: macOf(0x1000 + id) },
    podVeth: { name: 'eth0', mac: macOf(0x2000 + id) },
    ...more,
  };
}

async function reach(kernel: NodeKernel, desired: HostState): Promise<readonly string[]> {
  const lines: string[] = [];
  const { operations } = diffHost(desired, await observeHost(kernel, desired));
  await applyOperations(kernel, operations, { onOperation: (_operation, line) => lines.push(line) });
  return lines;
}

function eniOf(n: number): EniNetwork {
  return {
    ...{ eniId: `eni-${n}`, mac: macOf(n), ifindex: 20 + n, ifname: `eth${n}`, mtu: 1500, table: 4020 + n, slot: n },
    addresses: [
      { ip: `10.0.${n}.5`, gateway: `10.0.${n}.1` },
      { ip: `fd00:10:0:${n}::5`, gateway: `fd00:10:0:${n}::1` },
    ],
  };
}

function macOf(number: number): string {
  return `02:00:00:00:${(number >> 8).toString(16).padStart(2, '0')}:${(number & 255).toString(16).padStart(2, '0')}`;
}
