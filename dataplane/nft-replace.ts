import type { NftTable } from './desired.ts';
import { NFT_TABLE } from './numbers.ts';

// Declaring first makes what follows succeed when there is none: the listing may be old, or a comment may look like a chain.
const DECLARED = `table inet ${NFT_TABLE}\n`;

/**
 * Returns the commands that replace the present table by `table`, in one transaction. `former`: the chains of the present
 * one that `table` lacks, when the others can stay (`compareTables`).
 *
 * A packet is never without a table, but it may be in the old one when the transaction ends. A table that is deleted is
 * asked for some microseconds after its sets have gone; chains that stay get their new rules at once.
 */
export function nftReplaceCommands(table: NftTable, former?: readonly string[]): string {
  if (former === undefined) return nftDeleteCommands() + table.text;
  const declarations = former.map((name) => `add chain inet ${NFT_TABLE} ${name}\n`);
  const deletions = former.map((name) => `delete chain inet ${NFT_TABLE} ${name}\n`);
  return [DECLARED, ...declarations, `flush table inet ${NFT_TABLE}\n`, ...deletions, table.text].join('');
}

/** Returns the commands that delete the table. Idempotent. */
export function nftDeleteCommands(): string {
  return `${DECLARED}delete table inet ${NFT_TABLE}\n`;
}

/** How the present table differs from the wanted one. */
type TableDifference = {
  readonly isSame: boolean;
  /** Chains of the present table to delete when it gets its rules in place; undefined: it has to go as a whole. */
  readonly former?: readonly string[];
};

/**
 * Compares two listings of the table by one nft(8). The order of chains does not count: nft lists them in the order in
 * which they were made, and no two of ours have the same hook and priority.
 *
 * Rules can be replaced in place if that leaves nothing of the present table behind: it holds nothing but chains, no chain
 * has a comment or flags, those that stay have the hooks that they should have, and those that go are chains of ENIs. (Names
 * that others choose may mean another thing in a command.)
 */
export function compareTables(present: string, wanted: string): TableDifference {
  const [before, after] = [chainsOf(present), chainsOf(wanted)];
  if (before === undefined || after === undefined) return { isSame: present === wanted };
  const isSame = before.size === after.size && [...before].every(([name, text]) => after.get(name) === text);
  const former = [...before.keys()].filter((name) => !after.has(name));
  const isLeftClean = [...before].every(([name, text]) => {
    const planned = after.get(name);
    const isBare = !/^\t\t(?:comment|flags|devices)\b/m.test(text);
    return isBare && (planned === undefined ? isChainOfEni(name) : hookOf(planned) === hookOf(text));
  });
  return { isSame, ...(isLeftClean && { former }) };
}

function isChainOfEni(name: string): boolean {
  return /^(?:via|eni|from)_\d+$/.test(name);
}

function hookOf(chain: string): string | undefined {
  return /^\t\ttype .*$/m.exec(chain)?.[0];
}

/** Reads the chains of a listing, each with its whole text; undefined when the table holds more than chains. */
function chainsOf(listing: string): ReadonlyMap<string, string> | undefined {
  const [, ...parts] = listing.slice(0, listing.lastIndexOf('}')).split(/^(?=\t[^\t}\n])/m);
  const chains = parts.map((part): [string | undefined, string] => [
    /^\tchain (\S+) \{\n/.exec(part)?.[1],
    part.trimEnd(),
  ]);
  if (!chains.every((chain): chain is [string, string] => chain[0] !== undefined)) return undefined;
  const byName = new Map(chains);
  // A comment may hold lines that look like a chain.
  return byName.size === chains.length ? byName : undefined;
}
