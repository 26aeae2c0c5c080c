import type { Nft } from '../../dataplane/nft.ts';
import { emit, type Netns, type NftChain } from './netns.ts';
import { notModelled } from './refusal.ts';

/** What a run of nft takes, milliseconds. */
const NFT_MS = 5;

/** Told of each run that changes tables, before it does: the id of its process. */
type NftRuns = {
  readonly loading?: (pid: number) => void;
  /** Makes the error of a run that nft refuses. */
  readonly refused: (stderr: string) => Error;
};

type Tables = Netns['nft'];

/**
 * Opens nftables of a namespace. The text of a table is its state: chains in the order in which they were made, each with its
 * hook and its lines; a table is listed as it was written.
 */
export function openModelNft(netns: Netns, { loading, refused }: NftRuns): Nft {
  const { clock } = netns.machine;
  // A text that was tried is not tried again, as by the real one.
  let tried: { readonly text: string; readonly listing: string } | undefined;
  return {
    async read(table = 'tke_eni') {
      await clock.sleep(NFT_MS);
      const chains = netns.nft.get(table);
      return chains === undefined ? undefined : listing(table, chains);
    },
    async canonical(text, table = 'tke_eni') {
      if (tried?.text === text) return tried.listing;
      await clock.sleep(NFT_MS);
      const tables: Tables = new Map();
      const problem = run(tables, text);
      const chains = tables.get(table);
      if (problem !== undefined || chains === undefined) throw refused(problem ?? `no table ${table}`);
      tried = { text, listing: listing(table, chains) };
      return tried.listing;
    },
    async load(commands) {
      const pid = netns.machine.nextPid();
      loading?.(pid);
      await clock.sleep(NFT_MS);
      const tables: Tables = new Map([...netns.nft].map(([name, chains]) => [name, copyOf(chains)]));
      const problem = run(tables, commands);
      if (problem !== undefined) throw refused(problem);
      netns.nft.clear();
      for (const [name, chains] of tables) netns.nft.set(name, chains);
      netns.nftGeneration += 1;
      const generation = netns.nftGeneration;
      emit(netns, { kind: 'nftables', op: 'new', portid: pid, generation, pid, process: 'nft' });
    },
  };
}

/** Runs commands; @returns what nft says when it refuses one */
function run(tables: Tables, commands: string): string | undefined {
  const lines = commands.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = (lines[at] ?? '').trim();
    if (line === '') continue;
    const [, name, body] = /^table inet (\S+)( \{)?$/.exec(line) ?? [];
    if (name !== undefined) {
      const chains = tables.get(name) ?? new Map<string, NftChain>();
      tables.set(name, chains);
      if (body !== undefined) at = readTable(chains, lines, at + 1);
      continue;
    }
    const problem = command(tables, line);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const MISSING = 'Error: No such file or directory';

function command(tables: Tables, line: string): string | undefined {
  const [, verb, object, table = '', chain = ''] =
    /^(add|flush|delete) (table|chain) inet (\S+)(?: (\S+))?$/.exec(line) ?? [];
  if (line === 'flush ruleset') {
    tables.clear();
    return undefined;
  }
  if (verb === undefined || (verb === 'add' && object === 'table')) throw notModelled(`command of nft like "${line}"`);
  const chains = tables.get(table);
  if (chains === undefined) return MISSING;
  if (object === 'chain') {
    if (verb === 'add' && !chains.has(chain)) chains.set(chain, { rules: [] });
    if (verb === 'add') return undefined;
    const found = chains.get(chain);
    if (found === undefined) return MISSING;
    if (verb === 'flush') found.rules.length = 0;
    else chains.delete(chain);
  } else if (verb === 'delete') tables.delete(table);
  else for (const { rules } of chains.values()) rules.length = 0;
  return undefined;
}

/** Reads the chains of a table; those that are there get more lines. @returns the index of its last line */
function readTable(chains: Map<string, NftChain>, lines: readonly string[], from: number): number {
  let chain: NftChain | undefined;
  for (let at = from; at < lines.length; at++) {
    const line = (lines[at] ?? '').trim();
    const [, name] = /^chain (\S+) \{$/.exec(line) ?? [];
    if (name !== undefined) {
      chain = chains.get(name) ?? { rules: [] };
      chains.set(name, chain);
    } else if (line === '}') {
      if (chain === undefined) return at;
      chain = undefined;
    } else if (line !== '') {
      if (chain === undefined) throw notModelled(`part of a table like "${line}"`);
      if (line.startsWith('type ')) chain.hook = line;
      else chain.rules.push(line);
    }
  }
  return lines.length;
}

/** Renders a table as nft(8) lists it. */
export function listing(table: string, chains: ReadonlyMap<string, NftChain>): string {
  const blocks = [...chains].map(([name, { hook, rules }]) => {
    const lines = [...(hook === undefined ? [] : [hook]), ...rules].map((line) => `\t\t${line}\n`);
    return `\tchain ${name} {\n${lines.join('')}\t}\n`;
  });
  return `table inet ${table} {\n${blocks.join('\n')}}\n`;
}

function copyOf(chains: ReadonlyMap<string, NftChain>): Map<string, NftChain> {
  return new Map(
    [...chains].map(([name, { hook, rules }]) => [name, { ...(hook !== undefined && { hook }), rules: [...rules] }]),
  );
}
