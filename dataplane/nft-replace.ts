import type { NftTable } from './desired.ts';
import { NFT_TABLE } from './numbers.ts';

// Declaring first makes what follows succeed when there is no table.
const DECLARED = `table inet ${NFT_TABLE}\n`;

/**
 * Returns the commands that replace the present table by `table`, in one transaction. `former`: the chains of the present
 * one that `table` lacks, when the others can stay (`formerChains`).
 *
 * A packet is never without a table, but it may be in the old one when the transaction ends. A table that is deleted is
 * asked for some microseconds after its sets have gone; chains that stay get their new rules at once.
 */
export function nftReplaceCommands(table: NftTable, former?: readonly string[]): string {
  if (former === undefined) return nftDeleteCommands() + table.text;
  const deletions = former.map((name) => `delete chain inet ${NFT_TABLE} ${name}\n`);
  return `${DECLARED}flush table inet ${NFT_TABLE}\n${deletions.join('')}${table.text}`;
}

/** Returns the commands that delete the table. Idempotent. */
export function nftDeleteCommands(): string {
  return `${DECLARED}delete table inet ${NFT_TABLE}\n`;
}

/**
 * Compares two listings of the table by one nft(8) and returns the chains of `present` that `wanted` lacks, so that the
 * present table can get new rules in place. Undefined when it cannot: it holds more than chains, or a chain of both has
 * another hook.
 */
export function formerChains(present: string, wanted: string): readonly string[] | undefined {
  const [before, after] = [hooksByChain(present), hooksByChain(wanted)];
  if (before === undefined || after === undefined) return undefined;
  const staying = [...before].filter(([name]) => after.has(name));
  if (staying.some(([name, hook]) => after.get(name) !== hook)) return undefined;
  return [...before.keys()].filter((name) => !after.has(name));
}

/** Reads the chains of a listing, each with the line of its hook, if it has one; undefined when the table holds more. */
function hooksByChain(listing: string): ReadonlyMap<string, string | undefined> | undefined {
  const [, ...blocks] = listing.split(/^(?=\t[^\t}\n])/m);
  const chains = blocks.map((block) => /^\tchain (\S+) \{\n(?:\t\t(type .*)\n)?/.exec(block));
  if (chains.includes(null)) return undefined;
  return new Map(chains.map((chain): [string, string | undefined] => [chain?.[1] ?? '', chain?.[2]]));
}
