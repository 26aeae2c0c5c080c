import type { Lease } from '../../../agent/journal/lease.ts';
import type { NetState } from '../../../dataplane/desired.ts';
import { RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import type { ObservedHost } from '../../../dataplane/observed.ts';
import { renderRoute, renderRule } from '../../../dataplane/operation.ts';
import { desiredOf } from '../../../inspection/desired/desired-of.ts';
import type { RecordedSnapshot } from '../../../inspection/judge/compare-node.ts';
import { known } from '../../../inspection/node/known.ts';
import type { AgentFacts, NodeFacts } from '../../../inspection/node/node-facts.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { sysctlName } from '../../../sysctl/sysctl-key.ts';
import { eni, node } from '../../dataplane/fixtures.ts';
import { NO_TRAFFIC } from '../node/no-traffic.ts';

/** The ENIs of the fixture node. */
export const ENIS = [eni(5), eni(6)];

/** A Pod of ENI `n` with address `10.0.<n>.<last>` and host veth `eni<n>x<last>`, index n * 1000 + last. */
export function leaseOf(n: number, last: number, more: Partial<Lease> = {}): Lease {
  const containerId = `c${n}${last}`;
  return {
    containerId,
    ifName: 'eth0',
    network: 'tke-route-eni',
    plugin: 'route-eni',
    netns: `/run/netns/${containerId}`,
    podNamespace: 'default',
    podName: `web-${n}${last}`,
    podUid: containerId,
    addresses: [{ ip: `10.0.${n}.${last}`, family: 4, eniId: `eni-${n}`, assignmentId: `a-${n}-${last}` }],
    eniId: `eni-${n}`,
    state: 'active',
    hostVeth: { name: `eni${n}x${last}`, mac: '02:00:00:00:00:01', ifindex: n * 1000 + last },
    podMac: '02:00:00:00:00:02',
    mtu: 1500,
    createdAtMs: 0,
    ...more,
  };
}

/** What an agent recorded of two ENIs and these Pods. */
function agentOf(leases: readonly Lease[]): AgentFacts {
  const enis = ENIS.map(({ eniId, mac, table, slot }) => ({ eniId, mac, table, slot }));
  const journal = { leases, cooldowns: [], enis, ruleMode: 'compact' as const };
  return {
    journal,
    node: known({ bootId: 'b', agentRelease: '1', nodeName: 'n1', node: { ...node, families: [4] }, enis: ENIS }),
  };
}

/** A link as rtnetlink tells it. */
export function linkOf(ifindex: number, ifname: string, more: Partial<LinkMessage> = {}): LinkMessage {
  return { unknown: [], family: 0, type: 1, ifindex, flags: 1, change: 0, ifname, mtu: 1500, group: 0, ...more };
}

/** A node on which everything is as its agent planned it, seen at one moment. */
export function healthySight(leases: readonly Lease[] = [leaseOf(5, 10), leaseOf(6, 20)]): RecordedSnapshot {
  const agent = agentOf(leases);
  const links = [
    linkOf(1, 'lo'),
    linkOf(2, 'eth0', { address: '52:54:00:00:00:aa' }),
    ...ENIS.map(({ ifindex, ifname, mac }) => linkOf(ifindex, ifname, { address: mac })),
    ...leases.map(({ hostVeth, containerId, ifName }) =>
      linkOf(hostVeth?.ifindex ?? 0, hostVeth?.name ?? '', {
        kind: 'veth',
        ifalias: `tke-eni/${containerId}/${ifName}`,
        linkNetnsid: 1,
      }),
    ),
  ];
  const keys = leases.map(({ containerId, ifName }) => `${containerId}/${ifName}`);
  const desired = desiredOf(agent, links, new Map(keys.map((key) => [key, 2])));
  const nothing = {
    ...{ links: [], addresses: [], routes: [], rules: [], neighs: [], sysctls: new Map<string, string>() },
    traffic: NO_TRAFFIC,
  };
  const facts: NodeFacts = {
    host: {
      ...nothing,
      links,
      nft: known({ objects: [], ourTable: undefined }),
      legacyIptables: known([]),
      queueListeners: known([]),
      tableNames: new Map(),
    },
    agent: known(agent),
    pods: leases.map((lease, index) => ({
      key: keys[index] ?? '',
      lease: known(lease),
      hostIfindex: lease.hostVeth?.ifindex,
      inside: known(nothing),
    })),
  };
  const text = desired.host.nft?.text;
  return {
    agent,
    facts,
    desired,
    host: { ...asPlanned(desired.host), nft: text === undefined ? {} : { text, restore: text } },
    pods: [...desired.pods].flatMap(([key, state]) => {
      const network = desired.networks.get(key);
      const netns = `/run/netns/${key.split('/')[0]}`;
      return network === undefined ? [] : [{ key, netns, network, desired: state, observed: asPlanned(state) }];
    }),
    peers: new Map(),
    deadSandboxes: new Set(),
    unread: [],
  };
}

/** A kernel that holds exactly what a plan wants. */
export function asPlanned(plan: NetState): ObservedHost {
  const ours = { protocol: RTPROT_TKE_ENI };
  return {
    links: plan.links.map(({ ifindex, ifname, mtu = 65_536, group = 0, mac, ifalias }) => ({
      ifindex,
      ifname,
      isUp: true,
      mtu,
      group,
      ...(mac !== undefined && { mac }),
      ...(ifalias !== undefined && { ifalias }),
    })),
    addresses: plan.addresses,
    routes: plan.routes.map((route) => ({ ...route, ...ours, shown: renderRoute(route) })),
    rules: plan.rules.map((rule) => ({ ...rule, ...ours, shown: renderRule(rule) })),
    neighs: plan.neighs,
    sysctls: new Map(plan.sysctls.map(({ key, value }) => [sysctlName(key), value])),
    nft: {},
  };
}
