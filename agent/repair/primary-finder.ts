import { networkPrefix } from '../../dataplane/ip-prefix.ts';
import { locateBridge } from '../../dataplane/locate-bridge.ts';
import { masqueradeExempt } from '../../dataplane/masquerade-exempt.ts';
import type { BridgeNetwork, ConnectedNetwork, GrWiring, NodeNetwork, PodCidr } from '../../dataplane/network.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK } from '../../netlink/uapi/rtnetlink.ts';
import { assumedVpc, connectedNetworks } from '../node/connected-networks.ts';
import { findPrimary, type KnownPrimary, type PrimaryEvidence } from '../node/find-primary.ts';
import { type HostView, type NodeNetworkSettings, nodeNetworkOf, type PrimaryInterface } from '../node/node-network.ts';
import type { NodeState } from '../state/node-state.ts';
import type { AgentParts } from '../state/ports.ts';

/** Dependencies of finding the primary interface. */
export type PrimaryFinderDeps = Pick<AgentParts, 'state' | 'log'> & {
  readonly readHostView: () => HostView;
  /** Its name; '' finds it. */
  readonly configuredName: string;
  /** The primary interface of the last plan. Absent: none is recorded. */
  readonly recorded?: KnownPrimary | undefined;
  readonly settings: NodeNetworkSettings;
  /** How GlobalRoute Pods are wired; absent: not at all. */
  readonly bridge?: BridgeSettings;
  /** Called with the networks of the primary interface at each observation. */
  readonly observed?: (networks: readonly string[]) => void;
};

/** Settings of the bridge of GlobalRoute Pods. */
type BridgeSettings = {
  readonly name: string;
  readonly wiring: GrWiring;
  /** Bytes; 0 takes that of the primary interface. */
  readonly mtu: number;
};

/** Holds the node's own network as last observed. */
export type PrimaryFinder = {
  /**
   * Observes again. A primary interface that is missing for a moment is retained: its rules must not flap with a DHCP
   * lease.
   */
  observe(): void;
  /** The node as planned, in the rule mode in force; undefined until a primary interface was found. */
  current(): NodeNetwork | undefined;
  primary(): PrimaryInterface | undefined;
  /** What tells the primary interface now. */
  evidence(): PrimaryEvidence;
};

/** Creates a finder that has not observed yet. */
export function createPrimaryFinder({
  state,
  log,
  readHostView,
  configuredName,
  recorded,
  settings,
  bridge,
  observed,
}: PrimaryFinderDeps): PrimaryFinder {
  let known = recorded;
  let primary: PrimaryInterface | undefined;
  let isMissingLogged = false;
  let located: Omit<BridgeNetwork, 'masquerade'> | undefined;
  let connected: readonly ConnectedNetwork[] = [];
  const evidence = (): PrimaryEvidence => ({
    configured: configuredName === '' ? undefined : configuredName,
    nodeIps: state.nodeIps,
    known,
  });
  return {
    evidence,
    observe: () => {
      const macs = new Set(
        [...(state.supply?.enis ?? []), ...(state.supply?.direct?.enis ?? [])]
          .map(({ mac }) => mac)
          .filter((mac) => mac !== ''),
      );
      const view = readHostView();
      const found = findPrimary(view, evidence(), macs);
      if (found === undefined) {
        const link = view.links.find(({ ifindex }) => ifindex === primary?.ifindex);
        if (primary !== undefined && link !== undefined) primary = { ...primary, ifname: link.ifname };
        if (!isMissingLogged)
          log.warn('no primary interface', { wanted: configuredName === '' ? state.nodeIps : configuredName });
        isMissingLogged = true;
        return;
      }
      isMissingLogged = false;
      if (found.ifindex !== primary?.ifindex) log.info('primary interface', { ...found });
      primary = found;
      // Its addresses may be on their way to another link: until they are there the last ones tell it.
      known = {
        ifindex: found.ifindex,
        addresses: found.addresses.some(isGlobal) ? found.addresses : (known?.addresses ?? []),
      };
      located = bridge === undefined ? undefined : locate(bridge, view, found.ifindex);
      state.onLinkMtu = located?.mtu;
      connected = connectedOf(view, found.ifindex, state, settings);
      observed?.(networksOf(view, found.ifindex));
    },
    current: () => {
      if (primary === undefined) return undefined;
      const subnets = (state.supply?.enis ?? []).flatMap((eni) => eni.primary.map(({ subnetCidr }) => subnetCidr));
      const found = nodeNetworkOf(settings, primary, state.familiesOfNode(), subnets);
      const isExempting = settings.egress === 'node' && state.egressExempt.length > 0;
      // Where another program has the Pods on its bridge, they are in refused blocks too: only rule 1024 is ours there.
      const current = state.isBridgeUsed ? state.acceptedBlocks() : state.podCidrs;
      const blocks = [
        ...current.map((cidr) => podCidrOf(cidr, isIpv4(cidr))),
        ...state
          .formerBlocks()
          .filter((cidr) => !current.includes(cidr))
          .map(former),
      ];
      return {
        ...found,
        podCidrs: blocks,
        ...(located === undefined || !state.isBridgeUsed
          ? {}
          : { bridge: { ...located, mtu: smallestMtu(state, located.mtu), ...masqueradeOf(state, found) } }),
        ruleMode: state.ruleMode,
        ...(connected.length === 0 ? {} : { connected }),
        ...(hasExclusive(state) ? { hasDirect: true } : {}),
        ...(settings.serviceCidrs.length === 0 ? { serviceCidrs: state.serviceCidrs } : {}),
        ...(isExempting ? { egressExempt: state.egressExempt } : {}),
      };
    },
    primary: () => primary,
  };
}

function isGlobal(address: string): boolean {
  return !address.toLowerCase().startsWith('fe80:');
}

function locate(
  { name, wiring, mtu }: BridgeSettings,
  { links }: HostView,
  primaryIfindex: number,
): Omit<BridgeNetwork, 'masquerade'> {
  const ofPrimary = links.find(({ ifindex }) => ifindex === primaryIfindex)?.mtu ?? DEFAULT_MTU;
  return { ...locateBridge(links, name), wiring, mtu: mtu === 0 ? ofPrimary : mtu };
}

const DEFAULT_MTU = 1500;

function networksOf({ addresses }: HostView, ifindex: number): readonly string[] {
  const ofPrimary = addresses.filter((one) => one.ifindex === ifindex && one.family === AF_INET);
  return [...new Set(ofPrimary.map(({ address, prefixlen }) => networkPrefix(`${address}/${prefixlen}`)))].sort();
}

/**
 * No larger than the links of the Pods on the bridge: it drops what does not fit through a port, where the node, that
 * sends by the bridge's own MTU, would divide the packet or refuse it.
 */
function smallestMtu({ leases }: NodeState, mtu: number): number {
  const ofPods = [...leases.values()].filter(({ block }) => block?.wiring === 'bridge').map((lease) => lease.mtu);
  return Math.min(mtu, ...ofPods);
}

function masqueradeOf(
  { masquerade }: NodeState,
  { vpcCidrs }: Pick<NodeNetwork, 'vpcCidrs'>,
): Pick<BridgeNetwork, 'masquerade'> {
  return masquerade?.isOn === true ? { masquerade: { exempt: masqueradeExempt(vpcCidrs) } } : {};
}

function former(cidr: string): PodCidr {
  return podCidrOf(cidr, false);
}

/** Returns the networks that are connected to the node by links of others. */
function connectedOf(
  view: HostView,
  primaryIfindex: number,
  state: NodeState,
  settings: NodeNetworkSettings,
): readonly ConnectedNetwork[] {
  const { supply, podCidrs, serviceCidrs } = state;
  const enis = [...(supply?.enis ?? []), ...(supply?.direct?.enis ?? [])];
  const subnets = enis.flatMap(({ primary }) => primary.map(({ subnetCidr }) => subnetCidr));
  const own = view.addresses
    .filter(({ ifindex, scope }) => ifindex === primaryIfindex && scope !== RT_SCOPE_LINK)
    .map(({ address, prefixlen }) => networkPrefix(`${address}/${prefixlen}`));
  return connectedNetworks(view, {
    primaryIfindex,
    eniMacs: new Set(enis.map(({ mac }) => mac).filter((mac) => mac !== '')),
    taken: [
      ...assumedVpc(settings.vpcCidrs, [...subnets, ...own]),
      ...[...podCidrs, ...state.formerBlocks(), ...settings.serviceCidrs, ...serviceCidrs],
    ],
  });
}

/** There are no GlobalRoute Pods in IPv6: such a block is routed, and no address of the bridge is in it. */
function isIpv4(cidr: string): boolean {
  return !cidr.includes(':');
}

/**
 * Reports whether there is a whole ENI, or a Pod with one. The rule for them does no harm without any; a missing rule
 * does.
 */
function hasExclusive({ supply, leases }: NodeState): boolean {
  if ((supply?.direct?.enis.length ?? 0) > 0) return true;
  return [...leases.values()].some(({ plugin }) => plugin === 'direct-eni');
}
