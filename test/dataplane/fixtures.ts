import type { HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type { EniNetwork, NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';

/** A node with both families, NodePort and no peculiarities. */
export const node: NodeNetwork = {
  ruleMode: 'compact',
  eniMarkMask: 0x00ff0000,
  rpFilterMode: 'loose',
  egress: 'eni',
  primary: { ifindex: 2, ifname: 'eth0', addresses: ['10.0.0.2'] },
  podCidrs: [],
  families: [4, 6],
  nodePort: true,
  vpcCidrs: ['10.0.0.0/8', 'fd00:10::/32'],
};

/** A dual-stack ENI: table 4000 + n, slot n. */
export function eni(n: number): EniNetwork {
  return {
    eniId: `eni-${n}`,
    mac: `52:54:00:00:00:0${n}`,
    ifindex: n,
    ifname: `eth${n}`,
    mtu: 1500,
    table: 4000 + n,
    slot: n,
    addresses: [
      { ip: `10.0.${n}.5`, gateway: `10.0.${n}.1` },
      { ip: `fd00:10:0:${n}::5`, gateway: `fd00:10:0:${n}::1` },
    ],
  };
}

/** A dual-stack Pod on ENI `n` whose link is made. */
export function pod(n: number, last: number): PodNetwork {
  const containerId = `sandbox-${n}-${last}`;
  return {
    key: { containerId, ifName: 'eth0' },
    kind: 'route-eni',
    ips: [`10.0.${n}.${last}`, `fd00:10:0:${n}::${last}`],
    eniTable: 4000 + n,
    hostVeth: { name: `eni${n}x${last}`, mac: '02:00:00:00:00:01', ifindex: n * 1000 + last },
    podVeth: { name: 'eth0', mac: '02:00:00:00:00:02' },
    mtu: 1500,
    alias: `tke-eni/${containerId}/eth0`,
  };
}

/** A kernel in which the links of `desired` exist, untouched, and nothing else does. */
export function bareKernel(desired: HostState): ObservedHost {
  return {
    links: desired.links.map(({ ifindex, ifname, mac = '02:00:00:00:00:ff' }) => ({
      ifindex,
      ifname,
      isUp: false,
      mtu: 1500,
      group: 0,
      mac,
    })),
    addresses: [],
    routes: [],
    rules: [],
    neighs: [],
    sysctls: new Map(desired.sysctls.map(({ key, replaces }) => [sysctlName(key), replaces ?? 'untouched'])),
    nft: {},
  };
}

/** All that makes `desired` of a bare kernel, as lines that a person could type; the nft text left out. */
export function renderFromBare(desired: HostState): readonly string[] {
  const { nft: _nft, ...rest } = desired;
  return diffHost(rest, bareKernel(desired)).operations.map(renderOperation);
}
