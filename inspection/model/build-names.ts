import type { Lease } from '../../agent/journal/lease.ts';
import type { EniNetwork, PodNetwork } from '../../dataplane/network.ts';
import type { ModelEni, NodeModel } from './node-model.ts';

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
  /** 'the bridge br0', by its index. */
  link(ifindex: number): string;
};

const NODE: DifferenceOwner = { kind: 'node' };

/** The parts of a plan that have owners: Pods by key, and ENIs. */
type Planned = { readonly networks: ReadonlyMap<string, PodNetwork>; readonly enis: readonly EniNetwork[] };

/** Builds the index of one plan. */
export function buildNames(
  model: Pick<NodeModel, 'facts' | 'pods' | 'enis'>,
  { networks, enis }: Planned,
): ObjectNames {
  const podNames = new Map(
    model.pods.map(({ pod, lease, name }) => [pod.key, hasName(lease) ? name : `Pod ${pod.key}`]),
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
    link: (ifindex) => {
      const found = model.facts.host.links.find((link) => link.ifindex === ifindex);
      return found === undefined ? `the link ${ifindex}` : `the ${found.kind ?? 'link'} ${found.ifname}`;
    },
    text: (owner) => {
      if (owner.kind === 'node') return 'node';
      if (owner.kind === 'pod') return podNames.get(owner.key) ?? `Pod ${owner.key}`;
      const known = model.enis.find((eni) => eniIdOf(eni) === owner.eniId);
      if (known !== undefined) return known.name;
      const ifname = enis.find(({ eniId }) => eniId === owner.eniId)?.ifname;
      return ifname === undefined ? `ENI ${owner.eniId}` : `ENI ${owner.eniId} (${ifname})`;
    },
  };
}

/** Where no name is known the whole key identifies a Pod. */
function hasName(lease: Lease | undefined): boolean {
  return lease !== undefined && lease.podName !== '';
}

/** Returns the id of an ENI in findings; where no record names it, its table stands for it. */
export function eniIdOf({ eniId, table }: Pick<ModelEni, 'eniId' | 'table'>): string {
  return eniId ?? String(table);
}
