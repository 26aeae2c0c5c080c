import { EMPTY_STATE, type HostState, mergeHostState, type SysctlState } from '../../dataplane/desired.ts';
import { slotOfMark } from '../../dataplane/eni-mark.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import type { EniNetwork, NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { MAX_ENI_SLOT, PRIORITY } from '../../dataplane/numbers.ts';
import { planBridge } from '../../dataplane/plan-bridge.ts';
import { planEni } from '../../dataplane/plan-eni.ts';
import { planHost } from '../../dataplane/plan-host.ts';
import { planPod } from '../../dataplane/plan-pod.ts';
import { blockOf } from '../../dataplane/pod-cidr.ts';
import { bridgeCallIptables } from '../../sysctl/sysctl-key.ts';
import { eniIdOf } from '../model/build-names.ts';
import type { ModelEni, ModelPod, NodeModel } from '../model/node-model.ts';
import type { DesiredNode } from './desired-of.ts';
import { absentLink } from './match-recorded-enis.ts';
import { unrecordedBridge } from './unrecorded-bridge.ts';

/**
 * Plans the node from what the kernel itself says of it, where no record of an agent does: each ENI from its table and
 * rules, each Pod from the alias and the group of its link. What the kernel cannot say is in no plan: the nftables table,
 * refusing routes, settings whose value the agent's options decide, and Pods that have no link, an ENI of their own, or
 * an address of a block without the bridge.
 */
export function desiredByKernel(model: NodeModel): DesiredNode {
  const node = nodeOf(model);
  const enis = model.enis.map((eni) => eniOf(model, eni));
  const found = model.pods.flatMap((pod) => {
    const network = podOf(model, pod);
    return network === undefined ? [] : [{ pod, network, plan: planPod(node, network, pod.podLink?.ifindex) }];
  });
  const hasMark = new Set(model.enis.filter(({ mark }) => mark !== 0).map(({ table }) => table));
  const host = mergeHostState(
    planHost(node, enis),
    ...enis.map((eni) => planEni(node, eni)),
    planBridge(
      node,
      found.map(({ network }) => network),
    ),
    ...found.map(({ plan }) => plan.host),
  );
  return {
    host: {
      ...known(host),
      rules: host.rules.filter(({ priority, table }) => priority !== PRIORITY.eniMark || hasMark.has(table)),
    },
    ruleMode: node.ruleMode,
    pods: new Map(
      found.flatMap(({ pod, plan }) =>
        pod.podLink === undefined ? [] : [[pod.pod.key, { ...plan.pod, sysctls: [] }] as const],
      ),
    ),
    networks: new Map(found.map(({ pod, network }) => [pod.pod.key, network])),
    ...{ enis, unplanned: [], inTransit: new Set(), unjudged: [], isComplete: false },
  };
}

function known(host: HostState): HostState {
  return {
    ...EMPTY_STATE,
    links: host.links,
    addresses: host.addresses,
    routes: host.routes.filter(({ type }) => type === undefined),
    sysctls: host.sysctls.flatMap(knownSetting),
  };
}

/** Of the source check only the value counts that drops packets, or lets a Pod forge them. */
function knownSetting(setting: SysctlState): readonly SysctlState[] {
  const name = setting.key.path.at(-1) ?? '';
  if (name === 'rp_filter') return [{ ...setting, replaces: setting.value === '1' ? '0' : '1' }];
  return ['ip_forward', 'forwarding', 'disable_ipv6', CALL_IPTABLES].includes(name) ? [setting] : [];
}

const CALL_IPTABLES = bridgeCallIptables().path.at(-1) ?? '';

function nodeOf({ ruleMode, mask, families, primary, pods, facts }: NodeModel): NodeNetwork {
  const ports = pods.flatMap(({ gr, isOurs, veth }) => (gr?.wiring === 'bridge' && isOurs && veth ? [veth.mtu] : []));
  const bridge = unrecordedBridge(facts.host.links, ports);
  return {
    ...(bridge && { bridge }),
    ...{ ruleMode, eniMarkMask: mask, rpFilterMode: 'loose', egress: 'eni', families: [...families] },
    primary: { ifindex: primary?.ifindex ?? 0, ifname: primary?.ifname ?? 'unknown', addresses: [] },
    ...{ podCidrs: [], nodePort: false, vpcCidrs: [], nftables: false },
  };
}

function eniOf({ facts, mask }: NodeModel, eni: ModelEni): EniNetwork {
  const { link, table, mark, addresses } = eni;
  const slot = slotOfMark(mark, mask);
  const { ifindex, ifname, mtu } = link ?? absentLink({ slot: table % MAX_ENI_SLOT });
  const ofTable = facts.host.routes.filter((route) => route.table === table && route.oif === ifindex);
  const gatewayOf = (ip: string): string | undefined =>
    ofTable.find(({ dst, gateway }) => dst === undefined && gateway && familyOf(gateway) === familyOf(ip))?.gateway ??
    ofTable.find(({ dst }) => dst !== undefined && familyOf(dst) === familyOf(ip))?.dst?.split('/')[0];
  return {
    ...{ eniId: eniIdOf(eni), mac: eni.mac ?? link?.address ?? '', ifindex, ifname, mtu, table, slot },
    addresses: addresses.flatMap((ip) => {
      const gateway = gatewayOf(ip);
      return gateway === undefined ? [] : [{ ip, gateway }];
    }),
  };
}

function podOf({ ruleMode }: NodeModel, pod: ModelPod): PodNetwork | undefined {
  const { veth, podLink, containerId, ifName, ips, gr } = pod;
  if (!pod.isOurs || pod.hasOwnEni || veth === undefined) return undefined;
  const attachment = {
    ...{ key: { containerId, ifName }, ips },
    hostVeth: { name: veth.ifname, mac: veth.address ?? '', ifindex: veth.ifindex },
    podVeth: { name: ifName, mac: podLink?.address ?? '' },
    ...{ mtu: Math.max(veth.mtu, podLink?.mtu ?? 0), alias: veth.ifalias ?? '' },
  };
  if (gr?.wiring === 'bridge') return { ...attachment, kind: 'bridge', wiring: 'bridge', block: blockOf(gr) };
  // In compact mode nothing of the Pod itself depends on its ENI.
  const eniTable = pod.eniTable ?? (ruleMode === 'compact' ? veth.group : undefined);
  return pod.isGr || eniTable === undefined ? undefined : { ...attachment, kind: 'route-eni', eniTable };
}
