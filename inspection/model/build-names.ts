import { leaseKey } from '../../agent/journal/lease.ts';
import type { EniNetwork, PodNetwork } from '../../dataplane/network.ts';
import type { DesiredNode } from '../desired/desired-of.ts';
import type { AgentFacts } from '../node/node-facts.ts';

/** Part of the node that a difference belongs to. */
export type DifferenceOwner =
  | { readonly kind: 'pod'; readonly key: string }
  | { readonly kind: 'eni'; readonly eniId: string }
  | { readonly kind: 'node' };

/** Index of owners by interface, address and table, from the plan. */
export type ObjectNames = {
  ofIfindex(ifindex: number): DifferenceOwner;
  ofIfname(ifname: string): DifferenceOwner;
  /** Returns the owner of an address or of a prefix of a single address. */
  ofAddress(prefix: string): DifferenceOwner;
  ofTable(table: number): DifferenceOwner;
  text(owner: DifferenceOwner): string;
};

const NODE: DifferenceOwner = { kind: 'node' };

/** Builds the index of one plan. */
export function buildNames(agent: AgentFacts, { networks, enis }: Pick<DesiredNode, 'networks' | 'enis'>): ObjectNames {
  const podNames = new Map(
    agent.journal.leases.map(({ containerId, ifName, podNamespace, podName }) => {
      const key = leaseKey({ containerId, ifName });
      return [key, podName === '' ? key : `${podNamespace}/${podName}${ifName === 'eth0' ? '' : ` ${ifName}`}`];
    }),
  );
  const pods = [...networks];
  const podBy = (fits: (pod: PodNetwork) => boolean): DifferenceOwner | undefined => {
    const key = pods.find(([, pod]) => fits(pod))?.[0];
    return key === undefined ? undefined : { kind: 'pod', key };
  };
  const eniBy = (fits: (eni: EniNetwork) => boolean): DifferenceOwner | undefined => {
    const eniId = enis.find(fits)?.eniId;
    return eniId === undefined ? undefined : { kind: 'eni', eniId };
  };
  return {
    ofIfindex: (ifindex) =>
      podBy(({ hostVeth }) => hostVeth.ifindex === ifindex) ?? eniBy((eni) => eni.ifindex === ifindex) ?? NODE,
    ofIfname: (ifname) =>
      podBy(({ hostVeth }) => hostVeth.name === ifname) ?? eniBy((eni) => eni.ifname === ifname) ?? NODE,
    ofAddress: (prefix) => {
      const ip = prefix.split('/')[0] ?? prefix;
      return (
        podBy(({ ips }) => ips.includes(ip)) ??
        eniBy(({ addresses, podIps = [] }) => podIps.includes(ip) || addresses.some((address) => address.ip === ip)) ??
        NODE
      );
    },
    ofTable: (table) => eniBy((eni) => eni.table === table) ?? NODE,
    text: (owner) => {
      if (owner.kind === 'node') return 'node';
      if (owner.kind === 'pod') return `Pod ${podNames.get(owner.key) ?? owner.key}`;
      const ifname = enis.find(({ eniId }) => eniId === owner.eniId)?.ifname;
      return ifname === undefined ? `ENI ${owner.eniId}` : `ENI ${owner.eniId} (${ifname})`;
    },
  };
}
