import { checkExclusivePod } from '../../dataplane/check-exclusive-pod.ts';
import { checkPod, differences, type PodCheck } from '../../dataplane/check-pod.ts';
import { mergeHostState } from '../../dataplane/desired.ts';
import { hostVethFallbackName } from '../../dataplane/host-veth-name.ts';
import type { Kernel, NodeKernel } from '../../dataplane/kernel.ts';
import { letGo } from '../../dataplane/let-go.ts';
import { linkGroupOf } from '../../dataplane/link-group.ts';
import type { EniNetwork, EniPodNetwork, NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { nftTable } from '../../dataplane/nft-table.ts';
import { DEFAULT_ENI_MARK_MASK } from '../../dataplane/numbers.ts';
import { planBridge } from '../../dataplane/plan-bridge.ts';
import { planEni } from '../../dataplane/plan-eni.ts';
import { planHost } from '../../dataplane/plan-host.ts';
import { findPodLinks, type UnwiredPod, unwirePod } from '../../dataplane/unwire-pod.ts';
import { unwireExclusivePod, updateExclusiveRoutes, wireExclusivePod } from '../../dataplane/wire-exclusive-pod.ts';
import { wirePod } from '../../dataplane/wire-pod.ts';
import { isNetlinkError } from '../../netlink/netlink-error.ts';
import type { OpenNetns } from '../../netlink/netns.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import type { Logger } from '../../runtime/log.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { PodWiring, Sandboxes, WiredLink } from '../state/ports.ts';
import { renderExclusiveWiring, renderUnwiring, renderWiring } from './render-wiring.ts';

/** Dependencies of wiring a Pod. */
type PodWiringDeps = {
  readonly kernel: NodeKernel;
  /** The node as planned now, in the rule mode in force; undefined while it has no primary interface. */
  readonly nodeNetwork: () => NodeNetwork | undefined;
  readonly enis: () => readonly EniNetwork[];
  readonly sandboxes: Pick<Sandboxes, 'find' | 'own'>;
  /** Asks the runtime for the handler of a sandbox; undefined when it does not say. */
  readonly handlerOf: (containerId: string) => Promise<string | undefined>;
  /** Called when a Pod has no longer an ENI's interface: it is in the host's namespace, or was not found. */
  readonly nicReturned?: (mac: string, outcome: 'back' | 'missing') => void;
  /** Gets every change as the command lines that a person would type. */
  readonly log: Logger;
  /** Gets every change too; the lines are rendered only when someone reads them. */
  readonly changed?: (key: PodNetwork['key'], render: () => readonly string[]) => void;
};

/** Reports whether nothing in the kernel is ours for a Pod: another plugin made its link and keeps its rules and routes. */
function hasNothing(pod: PodNetwork): boolean {
  return pod.kind === 'ipam' && pod.hasForeignRules === true;
}

function macOfNic(pod: PodNetwork): string {
  return pod.kind === 'bridge' ? '' : (pod.nic?.mac ?? '');
}

const ANY_NODE: NodeNetwork = {
  ruleMode: 'compact',
  eniMarkMask: DEFAULT_ENI_MARK_MASK,
  rpFilterMode: 'loose',
  egress: 'eni',
  primary: { ifindex: 0, ifname: '', addresses: [] },
  podCidrs: [],
  families: [4],
  nodePort: false,
  vpcCidrs: [],
};

/** Binds the data plane's functions for one Pod to the host's kernel. */
export function openPodWiring({
  kernel,
  nodeNetwork,
  enis,
  log,
  changed,
  sandboxes,
  handlerOf,
  nicReturned,
}: PodWiringDeps): PodWiring {
  const node = (): NodeNetwork => {
    const found = nodeNetwork();
    if (found !== undefined) return found;
    throw new CniFailureError(
      CNI_CODE.tryAgainLater,
      'the node has no primary interface yet',
      'see --primary-interface',
    );
  };
  return {
    wire: (pod, netns) => {
      const network = node();
      if (hasNothing(pod)) {
        letGo(kernel.rtnetlink, pod.ips);
        return undefined;
      }
      const { wired, render } = wire({ kernel, sandboxes }, network, pod, netns);
      changed?.(pod.key, render);
      log.info('kernel changed', { requests: render(), cause: `ADD ${pod.alias}` });
      return wired;
    },
    unwire: async (pod, netnsPath) => {
      if (hasNothing(pod)) return;
      // What has to be removed does not depend on the primary interface, and a DEL must not wait for one.
      const network = nodeNetwork() ?? ANY_NODE;
      const { hadLink, finished, nic } = unwire({ kernel, sandboxes }, network, pod, netnsPath);
      await finished;
      if (nic !== undefined) nicReturned?.(macOfNic(pod), nic);
      if (!hadLink && nic !== 'back' && pod.kind !== 'ipam') return;
      const render = () => renderUnwiring(network, pod);
      changed?.(pod.key, render);
      log.info('kernel changed', { requests: render(), cause: `DEL ${pod.alias}` });
    },
    isLinked: (pod) => pod.kind !== 'ipam' && findPodLinks(kernel.rtnetlink, pod).length > 0,
    updateRoutes: async (pod, netnsPath) => {
      if (pod.kind !== 'direct-eni') return [];
      using netns = sandboxes.find(netnsPath);
      if (netns === undefined) return [];
      const lines = await updateExclusiveRoutes(kernel, netns, node(), pod, () => handlerOf(pod.key.containerId));
      if (lines.length === 0) return lines;
      changed?.(pod.key, () => lines);
      log.info('kernel changed', { requests: lines, cause: `routes of ${pod.alias}` });
      return lines;
    },
    verify: (pod) => (pod.kind === 'ipam' ? [] : verify(kernel.rtnetlink, pod)),
    check: async (pod, netns, depth) => {
      const network = node();
      const handler = () => handlerOf(pod.key.containerId);
      const check = (more: Pick<PodCheck, 'nft'>) =>
        pod.kind === 'direct-eni'
          ? checkExclusivePod(kernel, netns, { node: network, pod, handler, ...more })
          : checkPod(kernel, netns, { node: network, pod, handler, ...more });
      if (depth === 'own') return await check({});
      const podDifferences = await check(network.nftables === false ? {} : { nft: nftTable(network, enis()) });
      return [...podDifferences, ...sharedDifferences(kernel, network, enis(), pod)];
    },
  };
}

/**
 * Checks the result of wiring. The kernel acknowledged each write; this reads what they led to, with a route lookup as
 * a packet would make it.
 */
function verify(rtnetlink: Rtnetlink, pod: PodNetwork): readonly string[] {
  const { ifindex, name } = pod.hostVeth;
  const link = ifindex === undefined ? undefined : rtnetlink.link.get({ ifindex });
  if (link === undefined) return [`link ${name} is gone`];
  const group = linkGroupOf(pod);
  const lost = pod.ips.filter((dst) => oifTo(rtnetlink, dst) !== (isPort(pod) ? link.master : ifindex));
  return [
    ...(link.ifalias === pod.alias ? [] : [`link ${name} has the alias "${link.ifalias ?? ''}", not "${pod.alias}"`]),
    ...(link.group === group ? [] : [`link ${name} is in group ${link.group}, not ${group}`]),
    ...(link.flags & IFF_UP ? [] : [`link ${name} is down`]),
    ...lost.map((ip) => `packets to ${ip} do not go to ${name}`),
  ];
}

/** Returns the link by which packets to an address leave; undefined where a route refuses them. */
function oifTo(rtnetlink: Rtnetlink, dst: string): number | undefined {
  try {
    return rtnetlink.route.get({ dst }).oif;
  } catch (error) {
    if (isNetlinkError(error, 'EHOSTUNREACH', 'ENETUNREACH')) return undefined;
    throw error;
  }
}

/** Reports whether packets reach the Pod by a bridge. */
function isPort(pod: PodNetwork): boolean {
  return pod.kind === 'bridge' && pod.wiring === 'bridge';
}

/** Compares what the Pod's packets need and other Pods share: the node's rules, and its ENI. */
function sharedDifferences(
  kernel: Kernel,
  node: NodeNetwork,
  enis: readonly EniNetwork[],
  pod: PodNetwork,
): readonly string[] {
  const { nft: _nft, ...host } = planHost(node, enis);
  if (pod.kind === 'bridge') return differences(kernel, mergeHostState(host, planBridge(node, [pod])), 'host');
  const eniPlans = enis.filter(({ table }) => table === pod.eniTable).map((eni) => planEni(node, eni));
  return differences(kernel, mergeHostState(host, ...eniPlans), 'host');
}

type Ways = Pick<PodWiringDeps, 'kernel' | 'sandboxes'>;

type Wired = { readonly wired: WiredLink | undefined; readonly render: () => readonly string[] };

function wire(ways: Ways, node: NodeNetwork, pod: PodNetwork, netns: OpenNetns | undefined): Wired {
  const { kernel, sandboxes } = ways;
  const fallbackName = hostVethFallbackName(pod.key);
  if (netns === undefined) {
    // Only rules are written: the Pod's namespace is not entered.
    using hostNetns = sandboxes.own();
    wirePod(kernel, hostNetns, { node, pod, fallbackName });
    return { wired: undefined, render: () => renderWiring(node, pod, undefined) };
  }
  if (pod.kind === 'direct-eni') return wireExclusive(ways, netns, { node, pod, fallbackName });
  const { hostIfindex: ifindex, hostName: name, podIfindex } = wirePod(kernel, netns, { node, pod, fallbackName });
  const made = { ...pod, hostVeth: { ...pod.hostVeth, name, ifindex } };
  const end = { netns: netns.path, ifindex: podIfindex };
  return { wired: { ifindex, name }, render: () => renderWiring(node, made, end) };
}

function wireExclusive(
  { kernel, sandboxes }: Ways,
  netns: OpenNetns,
  {
    node,
    pod,
    fallbackName,
  }: { readonly node: NodeNetwork; readonly pod: EniPodNetwork; readonly fallbackName: string },
): Wired {
  using host = sandboxes.own();
  const {
    hostIfindex: ifindex,
    hostName: name,
    ends,
  } = wireExclusivePod(kernel, host, netns, { node, pod, fallbackName });
  const made = { ...pod, hostVeth: { ...pod.hostVeth, name, ifindex } };
  return { wired: { ifindex, name }, render: () => renderExclusiveWiring(node, made, { netns: netns.path, ends }) };
}

type Unwired = UnwiredPod & { readonly nic?: 'back' | 'missing' };

function unwire({ kernel, sandboxes }: Ways, node: NodeNetwork, pod: PodNetwork, netnsPath: string): Unwired {
  if (pod.kind !== 'direct-eni') return unwirePod(kernel, node, pod);
  using hostNetns = sandboxes.own();
  const podNetns = sandboxes.find(netnsPath);
  try {
    return unwireExclusivePod(kernel, node, pod, { hostNetns, podNetns });
  } finally {
    podNetns?.close();
  }
}
