import type { HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type {
  BridgeNetwork,
  BridgePodNetwork,
  EniNetwork,
  EniPodNetwork,
  GrWiring,
  NodeNetwork,
} from '../../dataplane/network.ts';
import { BRIDGE_IFINDEX, BRIDGE_NAME } from '../../dataplane/numbers.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { blockOf, podCidrOf } from '../../dataplane/pod-cidr.ts';
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
export function pod(n: number, last: number): EniPodNetwork {
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

/** How GlobalRoute Pods are wired, while there is no bridge. */
export const bridge: BridgeNetwork = {
  name: BRIDGE_NAME,
  ifindex: BRIDGE_IFINDEX,
  isPresent: false,
  mtu: 1500,
  wiring: 'bridge',
};

/** The present block, and a former one. */
export const blocks = { present: podCidrOf('172.31.0.64/26'), former: podCidrOf('172.31.7.0/26', false) } as const;

/** A GlobalRoute Pod whose link is made. */
export function bridgePod(last: number, wiring: GrWiring = 'bridge', block = blocks.present): BridgePodNetwork {
  const containerId = `sandbox-gr-${block.cidr}-${last}`;
  return {
    key: { containerId, ifName: 'eth0' },
    kind: 'bridge',
    wiring,
    block: blockOf(block),
    ips: [block.gateway.replace(/\d+$/, (first) => String(Number(first) + last))],
    hostVeth: {
      name: `gr${block.isCurrent ? 'x' : 'y'}${last}`,
      mac: '02:00:00:00:00:03',
      ifindex: (block.isCurrent ? 70_000 : 80_000) + last,
    },
    podVeth: { name: 'eth0', mac: '02:00:00:00:00:04' },
    mtu: 1500,
    alias: `tke-eni/${containerId}/eth0`,
  };
}

/** A kernel in which the links of `desired` exist, untouched, except bridges, and nothing else does. */
export function bareKernel(desired: HostState): ObservedHost {
  const bridges = new Set(desired.links.filter(({ kind }) => kind === 'bridge').map(({ ifname }) => ifname));
  return {
    links: desired.links
      .filter(({ kind }) => kind !== 'bridge')
      .map(({ ifindex, ifname, mac = '02:00:00:00:00:ff' }) => ({
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
    sysctls: new Map(
      desired.sysctls
        .filter(({ key }) => !key.path.some((element) => bridges.has(element)))
        .map(({ key, replaces }) => [sysctlName(key), replaces ?? 'untouched']),
    ),
    nft: {},
    filters: { ours: [], foreign: [] },
  };
}

/** All that makes `desired` of a bare kernel, as lines that a person could type; the nft text left out. */
export function renderFromBare(desired: HostState): readonly string[] {
  const { nft: _nft, ...rest } = desired;
  return diffHost(rest, bareKernel(desired)).operations.map(renderOperation);
}
