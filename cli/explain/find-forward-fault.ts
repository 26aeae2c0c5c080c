import { NFT_TABLE } from '../../dataplane/numbers.ts';
import { finding } from '../catalogue.ts';
import { evaluateChain, type Packet } from '../doctor/evaluate-chain.ts';
import { evaluateNftRules } from '../doctor/evaluate-nft-rules.ts';
import { type NftChain, parseNftChains } from '../doctor/parse-nft-chains.ts';
import type { Finding } from '../finding.ts';
import type { ExplainContext } from './explain-context.ts';

/** A packet that the node forwards. */
export type Forwarded = Packet & {
  /** Whether it opens its connection: a chain may accept answers where it drops first packets. */
  readonly isFirst: boolean;
};

/**
 * Finds the chain of another program that drops forwarded packets. The finding is an error where the drop is certain,
 * and a warning where the result depends on a rule that is not supported here.
 */
export function findForwardFault({ facts }: ExplainContext, packet: Forwarded): Finding | undefined {
  const { nft } = facts.host;
  const chains = parseNftChains(nft.kind === 'known' ? nft.value.objects : []);
  const families = ['inet', packet.family === 4 ? 'ip' : 'ip6'];
  const bases = chains
    .filter(({ hook, type }) => hook === 'forward' && type === 'filter')
    .filter(({ family, table }) => families.includes(family) && !(family === 'inet' && table === NFT_TABLE))
    .map((base) => ({ base, outcome: outcomeOf(chains, base, packet) }));
  const dropping =
    bases.find(({ outcome }) => outcome === 'dropped') ?? bases.find(({ outcome }) => outcome === 'maybe');
  return dropping === undefined ? undefined : forwardFinding(dropping.base, dropping.outcome === 'dropped', packet);
}

function outcomeOf(chains: readonly NftChain[], base: NftChain, packet: Packet): 'dropped' | 'maybe' | 'passes' {
  const ofTable = chains.filter(({ family, table }) => family === base.family && table === base.table);
  const rulesOf = (name: string) => ofTable.find((chain) => chain.name === name)?.rules ?? [];
  const outcome = evaluateChain((name) => evaluateNftRules(rulesOf(name), packet), base.name);
  if (outcome === 'dropped' || (outcome === 'through' && base.policy === 'drop')) return 'dropped';
  // Where the policy is accept, an unsupported rule is assumed to let Pods pass.
  return outcome === 'maybe' && base.policy === 'drop' ? 'maybe' : 'passes';
}

function forwardFinding({ family, table, name, policy }: NftChain, isCertain: boolean, packet: Forwarded): Finding {
  const chain = `chain ${family} ${table} ${name} (policy ${policy})`;
  const what = isCertain
    ? `${chain} drops it${packet.isFirst ? '' : ', unless it is an answer that the chain knows of'}`
    : `the policy of ${chain} is drop: whether one of its rules accepts the packet cannot be decided here`;
  return finding('forward-policy-drop', {
    what,
    fix: ['tke-eni doctor', `nft list chain ${family} ${table} ${name}`],
    subjects: [`nft:${table}`],
    severity: isCertain && packet.isFirst ? 'error' : 'warning',
  });
}
