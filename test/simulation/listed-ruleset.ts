import { execFileSync } from 'node:child_process';
import { NFT_TABLE } from '../../dataplane/numbers.ts';
import type { NftFacts } from '../../inspection/node/node-facts.ts';

/** What nft(8) listed of each text. Few differ: the tables of a node change with its ENIs alone. */
const listed = new Map<string, NftFacts>();
const MOST_LISTED = 500;
const SEPARATOR = '---';
const LIST = `nft -f - && nft -j list ruleset && echo ${SEPARATOR} && nft -n -s list table inet ${NFT_TABLE} 2>/dev/null; true`;

/** Reports whether nft(8) can list a ruleset in a namespace of its own, which root alone can make. */
export function canListRulesets(): boolean {
  return process.getuid?.() === 0;
}

/** Returns how nft(8) lists a ruleset, by loading it in an empty namespace. @throws Error where nft refuses it */
export function listRuleset(text: string): NftFacts {
  const before = listed.get(text);
  if (before !== undefined) return before;
  const output = execFileSync('unshare', ['--net', 'sh', '-c', LIST], {
    input: text,
    encoding: 'utf8',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
  });
  const [json = '', ourTable = ''] = output.split(`${SEPARATOR}\n`);
  const { nftables } = JSON.parse(json) as { readonly nftables: readonly Readonly<Record<string, unknown>>[] };
  const facts = {
    objects: nftables.filter((one) => !('metainfo' in one)),
    ourTable: ourTable === '' ? undefined : ourTable,
  };
  if (listed.size >= MOST_LISTED) listed.clear();
  listed.set(text, facts);
  return facts;
}
