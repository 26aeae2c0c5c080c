import type { IptablesFacts } from './doctor-facts.ts';

/** A rule as iptables-save prints it. */
export type IptablesRule = {
  readonly backend: 'legacy' | 'nft';
  readonly table: string;
  readonly chain: string;
  /** What follows the chain, quotes taken off. */
  readonly words: readonly string[];
};

/** A chain as iptables-save prints it. */
export type IptablesChain = {
  readonly backend: 'legacy' | 'nft';
  readonly table: string;
  readonly chain: string;
  /** 'ACCEPT', 'DROP'; '-' of a chain that is not built in. */
  readonly policy: string;
};

/** What both backends hold. */
export type IptablesRules = { readonly rules: readonly IptablesRule[]; readonly chains: readonly IptablesChain[] };

/**
 * Reads what iptables-save printed of both backends. Where the programs are missing, as in some containers, nft tells of its
 * backend which chains and how many rules there are, and not what the rules do: their words are empty.
 */
export function findIptablesRules(
  { legacy, nft }: Pick<IptablesFacts, 'legacy' | 'nft'>,
  objects: readonly Readonly<Record<string, unknown>>[],
): IptablesRules {
  const saved = findSaved({ legacy, nft });
  return nft.kind === 'known' ? saved : addListed(saved, objects);
}

/** Tables of iptables-nft have iptables' names. */
const TABLES = new Set(['filter', 'nat', 'mangle', 'raw', 'security']);

function addListed(saved: IptablesRules, objects: readonly Readonly<Record<string, unknown>>[]): IptablesRules {
  const listed = (kind: 'rule' | 'chain') =>
    objects.flatMap((object) => {
      const { family, table, chain, name, policy } = asRecord(object[kind]);
      const isOf = (family === 'ip' || family === 'ip6') && TABLES.has(String(table));
      return isOf
        ? [{ table: String(table), chain: String(chain ?? name), policy: String(policy ?? '-').toUpperCase() }]
        : [];
    });
  return {
    rules: [
      ...saved.rules,
      ...listed('rule').map(({ table, chain }) => ({ backend: 'nft' as const, table, chain, words: [] })),
    ],
    chains: [...saved.chains, ...listed('chain').map((chain) => ({ backend: 'nft' as const, ...chain }))],
  };
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function findSaved({ legacy, nft }: Pick<IptablesFacts, 'legacy' | 'nft'>): IptablesRules {
  const rules: IptablesRule[] = [];
  const chains: IptablesChain[] = [];
  for (const [backend, lines] of [['legacy', legacy] as const, ['nft', nft] as const]) {
    let table = '';
    for (const line of lines.kind === 'known' ? lines.value : []) {
      if (line.startsWith('*')) table = line.slice(1);
      else if (line.startsWith(':')) {
        const [chain = '', policy = '-'] = line.slice(1).split(' ');
        chains.push({ backend, table, chain, policy });
      } else if (line.startsWith('-A ')) {
        const [chain = '', ...words] = wordsOf(line.slice(3));
        rules.push({ backend, table, chain, words });
      }
    }
  }
  return { rules, chains };
}

/** Returns the word after an option; undefined without it. */
export function optionOf(words: readonly string[], ...names: readonly string[]): string | undefined {
  const at = words.findIndex((word) => names.includes(word));
  return at < 0 ? undefined : words[at + 1];
}

function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map((match) => match[1] ?? match[2] ?? '');
}
