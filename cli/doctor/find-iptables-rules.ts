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

/** Reads what iptables-save printed of both backends; a backend that could not be read has nothing. */
export function findIptablesRules({ legacy, nft }: Pick<IptablesFacts, 'legacy' | 'nft'>): IptablesRules {
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
