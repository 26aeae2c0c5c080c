import { slotOfMark } from '../../dataplane/eni-mark.ts';
import { findSharedNics, permanentMac } from '../../dataplane/find-nic.ts';
import { DEFAULT_ENI_MARK_MASK, isEniTable, PRIORITY, RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { ifKnown } from './known.ts';
import type { AgentFacts, Known, NetnsFacts } from './node-facts.ts';

/** An ENI that Pods share, as known from the agent's record or from the kernel. */
export type EniFacts = {
  /** Cloud id, 'eni-…'; undefined without the agent's record. */
  readonly eniId: string | undefined;
  /** Its routing table. The link group of its Pods has the same number. */
  readonly table: number;
  /** 1 to 255; undefined in per-pod mode without the agent's record. */
  readonly slot: number | undefined;
  /** In lower case; undefined when neither record nor link has it. */
  readonly mac: string | undefined;
  /** Its link in the host's namespace; undefined when it is not attached, or cannot be found in the kernel. */
  readonly link: LinkMessage | undefined;
  readonly ifindex: number | undefined;
  readonly ifname: string | undefined;
  /** Primary addresses, from the record or from the rules `from <address> lookup <table>`. */
  readonly addresses: readonly string[];
};

type Host = Pick<NetnsFacts, 'links' | 'addresses' | 'routes' | 'rules'>;

/**
 * Finds the ENIs of the node, in the order of their tables. Without the agent's record it uses the kernel's state only.
 */
export function findEnis(host: Host, agent: Known<AgentFacts>): readonly EniFacts[] {
  const recorded = recordedEnis(host, agent);
  const tables = new Set(recorded.map(({ table }) => table));
  const found = [...ourEniTables(host)].filter((table) => !tables.has(table)).map((table) => eniOfTable(host, table));
  return [...recorded, ...found].sort((a, b) => a.table - b.table);
}

function recordedEnis(host: Host, agent: Known<AgentFacts>): readonly EniFacts[] {
  const content = ifKnown(agent)?.journal;
  const record = ifKnown(agent)?.node;
  const linkOf = findSharedNics(host.links, content?.enis ?? [], (record && ifKnown(record)?.enis) ?? []);
  return (content?.enis ?? []).map(({ eniId, mac, table, slot }) => {
    const link = linkOf.get(eniId);
    const supplied = content?.supply?.enis.find((eni) => eni.eniId === eniId);
    const addresses = supplied?.primary.map(({ ip }) => ip) ?? eniOfTable(host, table).addresses;
    return { eniId, mac, table, slot, link, ifindex: link?.ifindex, ifname: link?.ifname, addresses };
  });
}

function ourEniTables({ routes, rules }: Host): ReadonlySet<number> {
  const ours = [...routes, ...rules].filter(({ protocol }) => protocol === RTPROT_TKE_ENI);
  return new Set(ours.map(({ table }) => table).filter(isEniTable));
}

function eniOfTable({ links, addresses, routes, rules }: Host, table: number): EniFacts {
  const ofTable = rules.filter((rule) => rule.table === table && rule.protocol === RTPROT_TKE_ENI);
  const primaries = ofTable
    .filter(({ priority }) => priority === PRIORITY.fromEniPrimary)
    .flatMap(({ src }) => (src === undefined ? [] : [src.split('/')[0] ?? src]));
  const route = routes.find(
    (candidate) => candidate.table === table && candidate.type === RTN_UNICAST && candidate.oif !== undefined,
  );
  const primaryAddress = addresses.find((address) => primaries.includes(ownAddress(address)));
  const link = links.find(({ ifindex }) => ifindex === (route?.oif ?? primaryAddress?.ifindex));
  const mark = ofTable.find(({ priority }) => priority === PRIORITY.eniMark)?.fwmark;
  return {
    eniId: undefined,
    table,
    slot:
      mark === undefined
        ? undefined
        : slotOfMark(mark, ofTable.find(({ fwmask }) => fwmask !== undefined)?.fwmask ?? DEFAULT_ENI_MARK_MASK),
    mac: link && permanentMac(link),
    link,
    ifindex: link?.ifindex,
    ifname: link?.ifname,
    addresses: primaries,
  };
}
