import { NFT_TABLE } from '../../dataplane/numbers.ts';
import { type JsonObject, recordsOf } from '../../runtime/json.ts';
import type { MatchResult, Packet, RuleVerdict } from './evaluate-chain.ts';
import { evaluateNftRules, matchStatement } from './evaluate-nft-rules.ts';
import { parseNftChains } from './parse-nft-chains.ts';

/** A packet as the nftables table of tke-eni matches it in prerouting. */
export type NftPacket = {
  readonly family: 4 | 6;
  readonly src: string;
  readonly dst: string;
  readonly iifname: string;
  readonly iifgroup: number;
  readonly mark: number;
  /** Direction within its connection: packets of the side that opened it, or answers. */
  readonly direction: 'original' | 'reply';
  /** Mark of its connection. */
  readonly ctMark: number;
  /** Whether the route back to its source uses the link on which it arrived. */
  readonly isSourceRouted: boolean;
  /** Whether its destination is an address of the node. */
  readonly isLocal: boolean;
};

/** What the table does with a packet. */
export type NftVerdict = {
  readonly verdict: 'accept' | 'drop';
  readonly mark: number;
  /** Chains that the packet went through, in order. */
  readonly chains: readonly string[];
  /** Statements that are not supported here. If there are any, the mark is a guess. */
  readonly unsupported: readonly string[];
};

/** Limit of visited chains. Chains of tke-eni never loop; chains of other programs might. */
const MAX_JUMPS = 32;
/** Statements that change nothing here, or that rules are evaluated by. */
const KNOWN: ReadonlySet<string> = new Set('match mangle vmap counter drop accept return jump goto'.split(' '));

/**
 * Evaluates the nftables table of tke-eni for a packet in prerouting, rule by rule, as a mark that one sets is what the next one
 * asks for. Supports the statements that tke-eni writes.
 * @see libnftables-json(5)
 */
export function evaluatePacketMark(objects: readonly JsonObject[], packet: NftPacket): NftVerdict {
  const chains = parseNftChains(objects).filter(({ family, table }) => family === 'inet' && table === NFT_TABLE);
  const { family, src, dst, iifname, ...state } = packet;
  const run: Run = {
    packet: { family, src, dst, iifs: [iifname], oifs: [] },
    state,
    rules: new Map(chains.map(({ name, rules }) => [name, rules])),
    mark: packet.mark,
    chains: [],
    unsupported: [],
  };
  const bases = chains.filter(({ hook }) => hook === 'prerouting').toSorted((a, b) => a.priority - b.priority);
  const isDropped = bases.some(({ name }) => runChain(run, name) === 'drop');
  const { mark, unsupported } = run;
  return { verdict: isDropped ? 'drop' : 'accept', mark, chains: run.chains, unsupported };
}

type Run = {
  readonly packet: Packet;
  readonly state: NonNullable<Packet['state']>;
  readonly rules: ReadonlyMap<string, readonly (readonly unknown[])[]>;
  mark: number;
  readonly chains: string[];
  readonly unsupported: string[];
};

function runChain(run: Run, chain: string): 'accept' | 'drop' | 'return' {
  if (run.chains.length >= MAX_JUMPS) return 'return';
  run.chains.push(chain);
  for (const expressions of run.rules.get(chain) ?? []) {
    for (const verdict of verdictsOf(run, recordsOf(expressions))) {
      if (verdict.kind === 'mark') run.mark = verdict.after(run.mark) ?? run.mark;
      if (verdict.kind === 'accept' || verdict.kind === 'drop' || verdict.kind === 'return') return verdict.kind;
      if (verdict.kind !== 'jump' && verdict.kind !== 'goto') continue;
      const answer = runChain(run, verdict.chain);
      if (answer !== 'return' || verdict.kind === 'goto') return answer;
    }
  }
  return 'return';
}

/** Returns the verdicts of a rule, none where it does not match; a rule with something that is not understood is left out. */
function verdictsOf(run: Run, statements: readonly JsonObject[]): readonly RuleVerdict[] {
  const packet = { ...run.packet, state: { ...run.state, mark: run.mark } };
  if (statements.some((statement) => matchStatement(statement, packet) === 'no')) return [];
  const steps = evaluateNftRules([statements], packet, undefined);
  const odd = statements.filter(
    (statement) =>
      Object.keys(statement).some((kind) => !KNOWN.has(kind)) || isUndecided(matchStatement(statement, packet)),
  );
  const isOpen = steps.some(
    ({ match, verdict }) => isUndecided(match) || (verdict.kind === 'mark' && verdict.after(run.mark) === undefined),
  );
  const leftOut = odd.length > 0 || !isOpen ? odd : statements;
  run.unsupported.push(...leftOut.map((statement) => JSON.stringify(statement)));
  return leftOut.length > 0 ? [] : steps.flatMap(({ match, verdict }) => (match === 'yes' ? [verdict] : []));
}

function isUndecided(match: MatchResult): boolean {
  return match !== 'yes' && match !== 'no';
}
