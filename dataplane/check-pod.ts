import type { NetnsRef } from '../netlink/link-message.ts';
import { sysctlName } from '../sysctl/sysctl-key.ts';
import type { Conflict } from './conflict.ts';
import type { HostState, NetState, NftTable } from './desired.ts';
import { diffHost } from './diff.ts';
import type { InNetns, Kernel, NodeKernel } from './kernel.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import { NFT_TABLE } from './numbers.ts';
import { observeNetns, observeNft } from './observe.ts';
import { type Operation, renderAddress, renderOperation, renderRoute, renderRule } from './operation.ts';
import { planPod } from './plan-pod.ts';
import { planInside } from './read-inside.ts';

/** What a Pod is compared with; `nft` is the node's table, absent when there is none. */
export type PodCheck<Pod extends PodNetwork = PodNetwork> = {
  readonly node: NodeNetwork;
  readonly pod: Pod;
  readonly nft?: NftTable;
  /** Asks the runtime for the Pod's handler; undefined when it does not say. */
  readonly handler?: () => Promise<string | undefined>;
};

/** Conflicts that concern one Pod; all others concern the node. */
const POD_CONFLICTS: ReadonlySet<Conflict['kind']> = new Set(['link', 'sysctl', 'route', 'address']);

/**
 * Compares a Pod's links, addresses, routes, rules or group and map, neighbours, MTU and settings with its plan, on
 * both sides. Of a Pod whose sandbox took addresses and routes out, the inside is its link. Changes nothing. @returns every difference, for people; empty when there is none
 * @throws NetlinkError, SysctlError, NftError when the kernel cannot be read
 */
export async function checkPod(
  kernel: NodeKernel,
  podNetns: NetnsRef | undefined,
  check: PodCheck,
): Promise<readonly string[]> {
  const { node, pod, handler } = check;
  if (pod.kind === 'ipam') return differences(kernel, planPod(node, pod).host, 'host');
  const ofHost = [
    ...checkHostLink(kernel, pod),
    ...differences(kernel, planPod(node, pod).host, 'host'),
    ...(await checkNft(kernel, pod, check.nft)),
  ];
  if (podNetns === undefined) return [...ofHost, 'Pod: its network namespace is gone'];
  using inPod = kernel.enter(podNetns);
  return [...ofHost, ...(await checkInPod(inPod, { node, pod, ...(handler && { handler }) }))];
}

/** Compares the host's end of a Pod's link with its lease. */
export function checkHostLink({ rtnetlink }: Kernel, pod: PodNetwork): readonly string[] {
  const { ifindex, name, mac } = pod.hostVeth;
  if (ifindex === undefined) return [`host: the lease knows no link ${name}`];
  const link = rtnetlink.link.get({ ifindex });
  if (link === undefined) return [];
  return [
    ...unequal(`host: kind of ${name}`, link.kind, 'veth'),
    ...unequal(`host: MAC of ${name}`, link.address, mac),
  ];
}

/**
 * Compares the project's nftables table with the wanted one; the text names this Pod's group when the rule for it is
 * missing.
 */
export async function checkNft(kernel: Kernel, pod: PodNetwork, nft: NftTable | undefined): Promise<readonly string[]> {
  if (nft === undefined) return [];
  const found = await observeNft(kernel, nft.text);
  if (found.text !== undefined) return [];
  const table = `host: nftables table inet ${NFT_TABLE}`;
  if (found.restore === undefined) return [`${table} is missing`];
  if (pod.kind === 'direct-eni' || pod.kind === 'bridge') return [`${table} is altered`];
  const hasGroup = found.restore.includes(`iifgroup ${pod.eniTable} goto eni_${pod.eniTable}\n`);
  return [`${table} is altered${hasGroup ? '' : `; it has no rule for link group ${pod.eniTable}`}`];
}

async function checkInPod(inPod: InNetns, { node, pod, handler }: PodCheck): Promise<readonly string[]> {
  const { rtnetlink } = inPod;
  const ifname = pod.podVeth.name;
  const link = rtnetlink.link.get({ ifname });
  if (link === undefined) return [`Pod: interface ${ifname} is missing`];
  const plan = planPod(node, pod, link.ifindex).pod;
  const compare = (state: NetState) =>
    differences(inPod, state, 'Pod', pod.kind === 'bridge' ? SUBNET_CONFLICTS : POD_CONFLICTS);
  const found = [...unequal(`Pod: MAC of ${ifname}`, link.address, pod.podVeth.mac), ...compare(plan)];
  if (found.length === 0) return found;
  const inside = await planInside(inPod, plan, handler);
  // A device of Kata's takes the MAC as well.
  return inside === plan ? found : compare(inside);
}

/** As `POD_CONFLICTS`, for interfaces that have the prefix of their subnet or block. */
export const SUBNET_CONFLICTS: ReadonlySet<Conflict['kind']> = new Set(['link', 'sysctl', 'route']);

/** Compares one side with a plan; `side` begins each line. Changes nothing. @returns every difference, for people */
export function differences(
  kernel: Pick<Kernel, 'rtnetlink' | 'sysctl'>,
  plan: NetState,
  side: 'host' | 'Pod',
  conflictKinds = POD_CONFLICTS,
): readonly string[] {
  const desired: HostState = plan;
  const { operations, conflicts } = diffHost(desired, observeNetns(kernel, plan));
  return [
    ...operations.flatMap(describe),
    ...conflicts.filter(({ kind }) => conflictKinds.has(kind)).map(({ message }) => message),
  ].map((text) => `${side}: ${text}`);
}

/** Describes what an operation would repair. Deletions are left out: other objects belong to other Pods. */
function describe(operation: Operation): readonly string[] {
  switch (operation.kind) {
    case 'set-sysctl':
      return [`sysctl ${sysctlName(operation.key)} is ${operation.before}, should be ${operation.value}`];
    case 'make-bridge':
      return [`bridge ${operation.bridge.ifname} is missing`];
    case 'set-link':
    case 'set-port':
      return Object.entries(operation.change).map(([property, value]) => {
        const before = Object.entries(operation.before).find(([name]) => name === property)?.[1];
        return `link ${operation.ifname}: ${property} is ${before === '' ? 'missing' : before}, should be ${value}`;
      });
    case 'add-address':
      return operation.before === undefined
        ? [`address ${operation.address.prefix} is missing on ${operation.address.ifname}`]
        : [`address is "${renderAddress(operation.before)}", should be "${renderAddress(operation.address)}"`];
    case 'replace-route':
      return operation.before === undefined
        ? [`route "${renderRoute(operation.route)}" is missing`]
        : [`route is "${renderRoute(operation.before)}", should be "${renderRoute(operation.route)}"`];
    case 'add-rule':
      return [`IPv${operation.rule.family} rule "${renderRule(operation.rule)}" is missing`];
    case 'replace-neigh':
      return [
        `neighbour ${operation.neigh.dst} on ${operation.neigh.ifname} is ${operation.before?.lladdr || 'missing'}, should be ${operation.neigh.lladdr}`,
      ];
    case 'attach-filter':
    case 'detach-filter':
    case 'delete-bridge':
    case 'delete-route':
    case 'delete-rule':
    case 'delete-address':
    case 'delete-neigh':
    case 'replace-flowtable':
    case 'delete-flowtable':
    case 'add-flow-devices':
    case 'delete-flow-devices':
      return [];
    case 'load-nft':
      return [renderOperation(operation)];
  }
}

/** Describes the difference of two texts; empty when they are equal. */
export function unequal(what: string, found: string | undefined, expected: string): readonly string[] {
  return found === expected ? [] : [`${what} is ${found ?? 'missing'}, should be ${expected}`];
}
