import type { Link, Netns } from '../kernel/netns.ts';

/** Priorities by which nft names them. */
const PRIORITIES: Readonly<Record<string, number>> = { raw: -300, mangle: -150, dstnat: -100, filter: 0 };

type Chains = ReadonlyMap<string, { readonly hook?: string; readonly rules: readonly string[] }>;

/**
 * Returns the mark that a packet of a new connection has once it was received by a link: the chains of our nftables table at
 * prerouting, in their order. Lines about answers and about addresses are for other packets.
 */
export function markOf(netns: Netns, link: Link): number {
  let mark = 0;
  for (const chains of netns.nft.values()) {
    const entries = known.get(chains) ?? entriesOf(chains);
    known.set(chains, entries);
    for (const name of entries) mark = run(chains, name, { link, mark }).mark;
  }
  return mark;
}

/** What is read of a table's text, for as long as it stands: each load makes other chains. */
const known = new WeakMap<Chains, readonly string[]>();

function entriesOf(chains: Chains): readonly string[] {
  return [...chains]
    .flatMap(([name, { hook = '' }]) => {
      const [, base = '', sign = '+', more = '0'] =
        /^type \w+ hook prerouting priority (\w+)(?: ([+-]) (\d+))?;/.exec(hook) ?? [];
      if (base === '') return [];
      return [{ name, at: (PRIORITIES[base] ?? 0) + Number(`${sign}${more}`) }];
    })
    .sort((a, b) => a.at - b.at)
    .map(({ name }) => name);
}

type Received = { readonly link: Link; readonly mark: number };

function run(chains: Chains, name: string, received: Received): { readonly mark: number } {
  let { mark } = received;
  for (const line of chains.get(name)?.rules ?? []) {
    const verdict = /^(?:iifgroup (\d+)|iifname "([^"]+)") (goto|jump) (\S+)$/.exec(line);
    if (verdict !== null) {
      const [, group, ifname, verb, to = ''] = verdict;
      const isMatch = group === undefined ? ifname === received.link.ifname : Number(group) === received.link.group;
      if (!isMatch) continue;
      ({ mark } = run(chains, to, { link: received.link, mark }));
      if (verb === 'goto') return { mark };
    }
    const [, and = '0xffffffff', or] =
      /^meta mark set meta mark (?:and (0x[0-9a-f]+) )?or (0x[0-9a-f]+)$/.exec(line) ?? [];
    if (or !== undefined) mark = ((mark & Number(and)) | Number(or)) >>> 0;
  }
  return { mark };
}
