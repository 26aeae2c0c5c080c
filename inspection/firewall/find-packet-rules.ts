import { FLOWTABLE_TABLE, NFT_TABLE } from '../../dataplane/numbers.ts';
import { type JsonObject, listOf, recordOf } from '../../runtime/json.ts';
import type { Known } from '../node/node-facts.ts';
import {
  type IptablesFacts,
  type IptablesRule,
  isReadByIptables,
  parseIptablesRules,
} from '../node/parse-iptables-rules.ts';
import { elementsOf, type NftSets, readNftSets } from './evaluate-nft-rules.ts';
import { establishedMatch, holdsForEstablished, iptablesKinds, nftKinds } from './flow-conditions.ts';
import { type NftChain, parseNftChains } from './parse-nft-chains.ts';

/** Rulesets to search. */
type Rulesets = {
  /** Objects of `nft -j list ruleset`. */
  readonly objects: readonly JsonObject[];
  readonly iptables: Known<Pick<IptablesFacts, 'legacy' | 'nft'>>;
};

/** A chain with rules that check each packet by itself, and how they do. */
type PacketRules = {
  /** 'chain inet fw forward', 'chain FORWARD of iptables-nft, table mangle'. */
  readonly name: string;
  /** Names of what checks, sorted: 'limit', 'queue'. */
  readonly kinds: readonly string[];
  /** Command that shows it. */
  readonly show: string;
};

/**
 * Finds chains in which a forwarded packet of an established connection meets rules that check each packet by itself: limits,
 * quotas, lengths, chance, content, queues to a program, copies, rewriting. A condition or statement that is not known to be the same for
 * all packets of a flow counts. Rules for new connections are left out, those behind a rule that accepts all that is established, and
 * those that only log.
 */
export function findPacketRules({ objects, iptables }: Rulesets): readonly PacketRules[] {
  return [...inIptables(iptables), ...inNft(objects, iptables)];
}

/** What a rule is to a packet of an established connection. */
type Rule = {
  /** False where its condition on the state of the connection excludes an established one. */
  readonly isForEstablished: boolean;
  /** Whether it has other conditions. */
  readonly isConditional: boolean;
  readonly kinds: readonly string[];
  /** Chains that it leads to. */
  readonly chains: readonly string[];
  /** Whether it decides about the packet, or ends its chain alone. */
  readonly isEnd: boolean;
  readonly isReturn: boolean;
  /** Whether it does no more than to log. */
  readonly isLogAlone: boolean;
};

/** Walks the chains from a base chain on. Returns the kinds that it met by the name of their chain. */
function walk(base: string, rulesOf: (chain: string) => readonly Rule[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  /** Whether each packet of an established connection ends there; false while it is not known yet. */
  const ending = new Map<string, boolean>();
  const visit = (chain: string): boolean => {
    const before = ending.get(chain);
    if (before !== undefined) return before;
    ending.set(chain, false);
    for (const { isConditional, kinds, chains, isEnd, isReturn, isLogAlone } of rulesOf(chain).filter(forEstablished)) {
      if (kinds.length > 0 && !isLogAlone) found.set(chain, new Set([...(found.get(chain) ?? []), ...kinds]));
      const ends = chains.map(visit);
      if (isConditional) continue;
      if (isReturn) return false;
      if (isEnd || (ends.length > 0 && ends.every(Boolean))) {
        ending.set(chain, true);
        return true;
      }
    }
    return false;
  };
  visit(base);
  return found;
}

function forEstablished({ isForEstablished }: Rule): boolean {
  return isForEstablished;
}

function sorted(kinds: ReadonlySet<string>): readonly string[] {
  return [...kinds].sort();
}

const NFT_HOOKS: ReadonlySet<unknown> = new Set(['ingress', 'prerouting', 'forward', 'postrouting']);

function inNft(objects: readonly JsonObject[], iptables: Rulesets['iptables']): readonly PacketRules[] {
  const chains = parseNftChains(objects)
    .filter(({ family, table }) => !(family === 'inet' && (table === NFT_TABLE || table === FLOWTABLE_TABLE)))
    .filter((chain) => !isReadByIptables(iptables, chain));
  const tables = Map.groupBy(chains, ({ family, table }) => `${family} ${table}`);
  const setsByTable = readNftSets(objects);
  return [...tables].flatMap(([table, ofTable]) => {
    const byName = new Map(ofTable.map((chain) => [chain.name, chain]));
    const sets = setsByTable.get(table) ?? new Map<string, readonly unknown[]>();
    const rulesOf = (name: string) => (byName.get(name)?.rules ?? []).map((rule) => nftRule(rule.map(recordOf), sets));
    return merged(ofTable.filter(isOnTheWay).map(({ name }) => walk(name, rulesOf))).map(([name, kinds]) => ({
      name: `chain ${table} ${name}`,
      kinds: sorted(kinds),
      show: `nft list chain ${table} ${name}`,
    }));
  });
}

function isOnTheWay({ hook, type }: NftChain): boolean {
  return NFT_HOOKS.has(hook) && (type === 'filter' || type === 'route');
}

function merged(
  parts: readonly ReadonlyMap<string, ReadonlySet<string>>[],
): readonly (readonly [string, Set<string>])[] {
  const all = new Map<string, Set<string>>();
  for (const [chain, kinds] of parts.flatMap((part) => [...part]))
    all.set(chain, new Set([...(all.get(chain) ?? []), ...kinds]));
  return [...all];
}

const NFT_ENDS = ['accept', 'drop', 'reject', 'queue'] as const;

function nftRule(statements: readonly JsonObject[], sets: NftSets): Rule {
  const states = statements.flatMap((statement) => establishedMatch(recordOf(statement['match'])) ?? []);
  const maps = statements.map((statement) => recordOf(statement['vmap'])).filter(({ key }) => key !== undefined);
  const byState = maps.filter(isByState).flatMap(({ data }) => verdictsOf(data, sets, 'established'));
  const otherMaps = maps.filter((map) => !isByState(map)).flatMap(({ data }) => verdictsOf(data, sets));
  const verdicts = [...statements, ...byState];
  const isConditional = statements.some(
    (statement) =>
      ('match' in statement && establishedMatch(recordOf(statement['match'])) === undefined) ||
      'limit' in statement ||
      'quota' in statement ||
      'xt' in statement,
  );
  return {
    isForEstablished: states.every(Boolean),
    isConditional: isConditional || otherMaps.length > 0,
    kinds: [...new Set(statements.flatMap(nftKinds))],
    chains: [...verdicts, ...otherMaps].flatMap(({ jump, goto }) => targetOf(jump ?? goto)),
    isEnd: hasAny(verdicts, NFT_ENDS),
    isReturn: hasAny(verdicts, ['return']),
    isLogAlone:
      hasAny(statements, ['log']) && !hasAny(verdicts, [...NFT_ENDS, 'return', 'jump', 'goto', 'mangle', 'dup']),
  };
}

function isByState({ key }: JsonObject): boolean {
  return recordOf(recordOf(key)['ct'])['key'] === 'state';
}

/** Lists the verdicts of a map: all, or those of one key. */
function verdictsOf(data: unknown, sets: NftSets, key?: string): readonly JsonObject[] {
  return (elementsOf(data, sets) ?? [])
    .map(listOf)
    .filter(([each]) => key === undefined || each === key)
    .map(([, verdict]) => recordOf(verdict));
}

function hasAny(statements: readonly JsonObject[], kinds: readonly string[]): boolean {
  return statements.some((statement) => kinds.some((kind) => kind in statement));
}

function targetOf(value: unknown): readonly string[] {
  const { target } = recordOf(value);
  return typeof target === 'string' ? [target] : [];
}

const LOGS: ReadonlySet<string> = new Set(['LOG', 'NFLOG', 'ULOG']);
const ENDS: ReadonlySet<string> = new Set(['ACCEPT', 'DROP', 'REJECT', 'NFQUEUE']);
const ON_THE_WAY = ['PREROUTING', 'FORWARD', 'POSTROUTING'] as const;
/** Tables whose rules are for packets and not for the first one of a connection. */
const PACKET_TABLES: ReadonlySet<string> = new Set(['raw', 'mangle', 'filter', 'security']);
/** Matches that are no condition, or one on the state of the connection. */
const STATE_MATCHES: ReadonlySet<string> = new Set(['conntrack', 'state', 'comment']);

function inIptables(iptables: Rulesets['iptables']): readonly PacketRules[] {
  if (iptables.kind === 'unknown') return [];
  const { chains, rules } = parseIptablesRules(iptables.value, []);
  const tables = Map.groupBy(rules, ({ backend, family, table }) => `${backend} ${family} ${table}`);
  return [...tables.values()].flatMap((ofTable) => {
    const [{ backend, family, table } = { backend: '', family: 4, table: '' }] = ofTable;
    if (!PACKET_TABLES.has(table)) return [];
    const byChain = Map.groupBy(ofTable, ({ chain }) => chain);
    // One without rules is a chain all the same, and no target.
    const declared = chains.filter(
      (each) => each.backend === backend && each.family === family && each.table === table,
    );
    const names = new Set([...byChain.keys(), ...declared.map(({ chain }) => chain)]);
    const rulesOf = (chain: string) => (byChain.get(chain) ?? []).map((rule) => iptablesRule(rule, names));
    const program = `${family === 4 ? 'iptables' : 'ip6tables'}-${backend}`;
    const [about, option] = table === 'filter' ? ['', ''] : [`, table ${table}`, ` -t ${table}`];
    return merged(ON_THE_WAY.map((base) => walk(base, rulesOf))).map(([chain, kinds]) => ({
      name: `chain ${chain} of ${program}${about}`,
      kinds: sorted(kinds),
      show: `${program}${option} -S ${chain}`,
    }));
  });
}

function iptablesRule({ args }: IptablesRule, ofTable: { has(chain: string): boolean }): Rule {
  const at = args.findIndex((arg) => arg === '-j' || arg === '-g');
  const target = at < 0 ? '' : (args[at + 1] ?? '');
  const conditions = at < 0 ? args : args.slice(0, at);
  const matches = conditions.flatMap((arg, index) => (arg === '-m' ? [conditions[index + 1] ?? ''] : []));
  const isChain = target !== '' && ofTable.has(target);
  return {
    isForEstablished: holdsForEstablished(conditions),
    isConditional:
      conditions.some((arg) => ['-s', '-d', '-i', '-o', '-p', '-f'].includes(arg)) ||
      matches.some((match) => !STATE_MATCHES.has(match)),
    kinds: iptablesKinds(conditions, matches, isChain ? '' : target),
    chains: isChain ? [target] : [],
    isEnd: ENDS.has(target),
    isReturn: target === 'RETURN',
    isLogAlone: LOGS.has(target),
  };
}
