import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { applyOperations } from '../../../dataplane/apply.ts';
import type { HostState } from '../../../dataplane/desired.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { enterNetns } from '../../../dataplane/enter-netns.ts';
import { hostVethAlias, hostVethFallbackName } from '../../../dataplane/host-veth-name.ts';
import type { Kernel, NodeKernel } from '../../../dataplane/kernel.ts';
import type { EniNetwork, EniPodNetwork, NodeNetwork } from '../../../dataplane/network.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { observeHost } from '../../../dataplane/observe.ts';
import { podCidrOf } from '../../../dataplane/pod-cidr.ts';
import { createNetns, deleteNetns, type Netns } from '../../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';

/** What `ip -j` or `ip` printed in a namespace: the independent judge. */
export type IpOf = {
  (...args: readonly string[]): string;
  json(...args: readonly string[]): readonly Record<string, unknown>[];
};

/** A node in a namespace of its own: eth0 is the primary, eth5 and eth6 are ENIs, all veths whose other ends do not answer. */
export type TestNode = {
  readonly name: string;
  readonly netns: Netns;
  readonly kernel: NodeKernel;
  readonly network: NodeNetwork;
  readonly enis: readonly EniNetwork[];
  readonly ip: IpOf;
  /** The namespace of the links' other ends: eth0 ends in far0. */
  readonly far: { readonly name: string; readonly ip: IpOf; readonly netns: Netns };
  /** Runs a command in the node's namespace; returns its stdout. */
  run(command: string, ...args: readonly string[]): string;
  createPodNetns(): { readonly name: string; readonly netns: Netns; readonly ip: IpOf };
  /** Observes, compares and applies until the kernel is as wanted; returns the lines that were needed. */
  reach(desired: HostState): Promise<readonly string[]>;
};

// npm puts node_modules/.bin in front, which has an `nft` of its own.
const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';

const ENI_NUMBERS = [5, 6];

const NETWORK: NodeNetwork = {
  ruleMode: 'compact',
  eniMarkMask: 0x00ff0000,
  rpFilterMode: 'loose',
  egress: 'eni',
  primary: { ifindex: 20, ifname: 'eth0', addresses: ['10.0.0.2', 'fd00:10::2'] },
  podCidrs: [podCidrOf('172.31.0.0/24')],
  families: [4, 6],
  nodePort: true,
  vpcCidrs: ['10.0.0.0/8', 'fd00:10::/32'],
};

/** Makes a node, runs the test, and removes all, also when the test fails. */
export async function withTestNode(run: (node: TestNode) => Promise<void> | void): Promise<void> {
  const names: string[] = [];
  const closers: (() => void)[] = [];
  const create = () => {
    const name = `tke-test-${randomBytes(4).toString('hex')}`;
    names.push(name);
    const netns = createNetns(name);
    closers.push(() => netns.close());
    return { name, netns, ip: ipOf(name) };
  };
  try {
    const host = create();
    const far = create();
    const enis = makeEnis(host.ip, far.name);
    const rtnetlink = openRtnetlinkIn(host.netns);
    closers.push(() => rtnetlink.close());
    const nft = openNft({ netnsPath: host.netns.path });
    const kernel = { rtnetlink, sysctl: openSysctl(host.netns), nft, enter: enterNetns };
    await run({
      ...host,
      far,
      kernel,
      enis,
      network: NETWORK,
      run: (command, ...args) =>
        execFileSync('ip', ['netns', 'exec', host.name, command, ...args], { encoding: 'utf8', env: { PATH } }),
      createPodNetns: create,
      reach: (desired) => reach(kernel, desired),
    });
  } finally {
    for (const close of closers) close();
    for (const name of names) deleteNetns(name);
  }
}

/** A Pod that is not wired yet, with a random MAC. */
export function podOf(
  eni: Pick<EniNetwork, 'table'>,
  ips: readonly string[],
  more: Partial<EniPodNetwork> = {},
): EniPodNetwork {
  const key = { containerId: randomBytes(8).toString('hex'), ifName: 'eth0' };
  const mac = () => `02:${[...randomBytes(5)].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`;
  return {
    key,
    kind: 'route-eni',
    ips,
    eniTable: eni.table,
    hostVeth: { name: hostVethFallbackName(key), mac: mac() },
    podVeth: { name: 'eth0', mac: mac() },
    mtu: 1400,
    alias: hostVethAlias(key),
    ...more,
  };
}

async function reach(kernel: Kernel, desired: HostState): Promise<readonly string[]> {
  const lines: string[] = [];
  const { operations } = diffHost(desired, await observeHost(kernel, desired));
  await applyOperations(kernel, operations, { onOperation: (_operation, line) => lines.push(line) });
  return lines;
}

function ipOf(name: string): IpOf {
  const ip = (...args: readonly string[]) =>
    execFileSync('ip', ['-n', name, ...args], { encoding: 'utf8', stdio: 'pipe' }).trim();
  const json = (...args: readonly string[]) =>
    (JSON.parse(ip('-j', ...args) || '[]') as readonly Record<string, unknown>[])
      // ip prints {} in the place of each object that a filter takes away.
      .filter((object) => Object.keys(object).length > 0);
  return Object.assign(ip, { json });
}

function makeEnis(ip: IpOf, far: string): readonly EniNetwork[] {
  ip('link', 'set', 'lo', 'up');
  for (const n of [0, ...ENI_NUMBERS]) {
    ip('link', 'add', `eth${n}`, 'index', String(n + 20), 'type', 'veth', 'peer', 'name', `far${n}`, 'netns', far);
    execFileSync('ip', ['-n', far, 'link', 'set', `far${n}`, 'up']);
  }
  ip('link', 'set', 'eth0', 'up');
  ip('address', 'add', '10.0.0.2/24', 'dev', 'eth0');
  ip('-6', 'address', 'add', 'fd00:10::2/64', 'dev', 'eth0', 'nodad');
  ip('route', 'add', 'default', 'via', '10.0.0.1');
  return ENI_NUMBERS.map((n) => ({
    eniId: `eni-${n}`,
    mac: String(ip.json('link', 'show', `eth${n}`)[0]?.['address']),
    ifindex: n + 20,
    ifname: `eth${n}`,
    mtu: 1500,
    table: 4020 + n,
    slot: n,
    addresses: [
      { ip: `10.0.${n}.5`, gateway: `10.0.${n}.1` },
      { ip: `fd00:10:0:${n}::5`, gateway: `fd00:10:0:${n}::1` },
    ],
  }));
}
