import { randomBytes } from 'node:crypto';
import { applyOperations } from '../../../dataplane/apply.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { enterNetns } from '../../../dataplane/enter-netns.ts';
import { openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { hostVethAlias, hostVethFallbackName } from '../../../dataplane/host-veth-name.ts';
import type { NodeKernel } from '../../../dataplane/kernel.ts';
import { locateBridge } from '../../../dataplane/locate-bridge.ts';
import { planMigration } from '../../../dataplane/migration.ts';
import type { EniNetwork, EniPodNetwork, NodeNetwork, PodNetwork } from '../../../dataplane/network.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { observeHost } from '../../../dataplane/observe.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { unwirePod } from '../../../dataplane/unwire-pod.ts';
import { wireExclusivePod } from '../../../dataplane/wire-exclusive-pod.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { type Netns, openNetns } from '../../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import type { AttachedEni } from '../../../sim/vpc/nic.ts';
import type { TestVpc } from '../../../sim/vpc/vpc.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';

/** A Pod as its node has it. */
type WiredPod = { readonly netns: NetnsView; network: PodNetwork };

/** One node of a world and the data plane's hold on it: all is planned, applied and wired without an agent. */
export class WorldNode {
  readonly name: string;
  readonly netns: NetnsView;
  readonly primary: Readonly<Record<4 | 6, string>>;
  readonly kernel: NodeKernel;
  readonly enis: readonly EniNetwork[];
  network: NodeNetwork;
  readonly pods: WiredPod[] = [];
  #held: Netns;

  constructor(vpc: TestVpc, name: string, enis: readonly AttachedEni[], changes: Partial<NodeNetwork>) {
    const { netns, primary } = vpc.node(name);
    this.name = name;
    this.netns = netns;
    this.primary = { 4: primary.primaryIp, 6: primary.primaryIpv6 ?? '' };
    this.#held = openNetns(netns.path);
    const rtnetlink = openRtnetlinkIn(this.#held);
    this.kernel = {
      rtnetlink,
      sysctl: openSysctl(this.#held),
      nft: openNft({ netnsPath: netns.path }),
      enter: enterNetns,
      ...(changes.fastPath === 'bpf' && { flows: openFlowPrograms() }),
    };
    const indexOf = (ifname: string) => rtnetlink.link.get({ ifname })?.ifindex ?? 0;
    this.enis = enis.map((eni, at) => eniNetwork(eni, indexOf(eni.ifname), at + 1));
    this.network = {
      ruleMode: 'compact',
      eniMarkMask: 0x00ff0000,
      rpFilterMode: 'loose',
      egress: 'eni',
      primary: {
        ...{ ifindex: indexOf('eth0'), ifname: 'eth0' },
        addresses: [primary.primaryIp, primary.primaryIpv6].filter((ip) => ip !== undefined),
      },
      podCidrs: [],
      families: [4, 6],
      nodePort: true,
      vpcCidrs: vpc.vpcCidrs,
      ...changes,
    };
  }

  /** Brings the kernel to the plan; with `coming`, to that of a Pod which is wired next. */
  async reach(coming: readonly PodNetwork[] = []): Promise<void> {
    const desired = this.#plan(coming);
    await applyOperations(this.kernel, diffHost(desired, await observeHost(this.kernel, desired)).operations);
  }

  /** As `reach`, one operation after the other in the order that `order` makes of them; `pause` runs after each. */
  async reachOneByOne(
    pause: () => Promise<void>,
    order: (operations: readonly Operation[]) => readonly Operation[],
  ): Promise<readonly Operation[]> {
    const desired = this.#plan();
    const operations = order(diffHost(desired, await observeHost(this.kernel, desired)).operations);
    for (const operation of operations) {
      await applyOperations(this.kernel, [operation]);
      await pause();
    }
    return operations;
  }

  /** Changes the rule mode stage by stage; `pause` runs after each. Returns what each stage was. */
  async migrate(ruleMode: NodeNetwork['ruleMode'], pause: () => Promise<void>): Promise<readonly string[]> {
    this.network = { ...this.network, ruleMode };
    const desired = this.#plan();
    const steps = planMigration(desired, await observeHost(this.kernel, desired));
    for (const step of steps) {
      await applyOperations(this.kernel, step.operations);
      await pause();
    }
    return steps.map(({ what }) => what);
  }

  wire(pod: WiredPod): void {
    using podNetns = openNetns(pod.netns.path);
    const { network } = pod;
    const fallbackName = hostVethFallbackName(network.key);
    const node = this.#present();
    const { hostIfindex, hostName } =
      network.kind === 'direct-eni'
        ? wireExclusivePod(this.kernel, this.#held, podNetns, { node, pod: network, fallbackName })
        : wirePod(this.kernel, podNetns, { node, pod: network, fallbackName });
    pod.network = { ...network, hostVeth: { ...network.hostVeth, name: hostName, ifindex: hostIfindex } };
    this.pods.push(pod);
  }

  async unwire(pod: WiredPod): Promise<void> {
    this.pods.splice(this.pods.indexOf(pod), 1);
    await unwirePod(this.kernel, this.network, pod.network).finished;
  }

  /** As it is now: the bridge may have come since. */
  #present(): NodeNetwork {
    const { bridge, ...network } = this.network;
    if (bridge === undefined) return network;
    return { ...network, bridge: { ...bridge, ...locateBridge(this.kernel.rtnetlink.link.list(), bridge.name) } };
  }

  #plan(coming: readonly PodNetwork[] = []) {
    const pods = this.pods.map(({ network }) => network);
    return planNode(this.#present(), this.enis, [...pods, ...coming]);
  }

  close(): void {
    this.kernel.flows?.close();
    this.kernel.rtnetlink.close();
    this.#held.close();
  }
}

/** A Pod of these addresses that nobody has wired yet. */
export function unwiredPod(eni: Pick<EniNetwork, 'table'>, ips: readonly string[]): EniPodNetwork {
  const key = { containerId: randomBytes(8).toString('hex'), ifName: 'eth0' };
  return {
    key,
    kind: 'route-eni',
    ips,
    eniTable: eni.table,
    hostVeth: { name: hostVethFallbackName(key), mac: randomMac() },
    podVeth: { name: 'eth0', mac: randomMac() },
    mtu: 1500,
    alias: hostVethAlias(key),
  };
}

function eniNetwork(eni: AttachedEni, ifindex: number, slot: number): EniNetwork {
  const { eniId, mac, ifname, primaryIp, gateway, primaryIpv6, gatewayV6 } = eni;
  const ipv6 = primaryIpv6 === undefined || gatewayV6 === undefined ? [] : [{ ip: primaryIpv6, gateway: gatewayV6 }];
  const addresses = [{ ip: primaryIp, gateway }, ...ipv6];
  return { eniId, mac, ifindex, ifname, mtu: 1500, table: 4000 + ifindex, slot, addresses };
}

function randomMac(): string {
  return `02:${[...randomBytes(5)].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`;
}
