import { NFT_TABLE } from '../../../dataplane/numbers.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { findMasqueraders } from '../../../inspection/node/find-masqueraders.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { prefixContains } from '../../../inspection/node/prefix-contains.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { buildGrOutline, NO_GR_PODS } from './gr-outline.ts';

/** Checks that one program masquerades what GlobalRoute Pods send to outside of the VPC. */
export const MASQUERADE_CHECK: Check = {
  id: 'masquerade',
  scope: 'GlobalRoute Pods: one program gives their packets to outside of the VPC the address of the node',
  finds: ['gr-masquerade'],
  evaluate: (facts) => {
    const outline = buildGrOutline(facts);
    if (outline === undefined) return skipped(NO_GR_PODS);
    const { planned, leases, isDefault } = outline;
    const live = ifKnown(facts.status)?.bridge;
    if (live === undefined && planned?.bridge === undefined)
      return skipped('it is not known whether the agent does it');
    const isOurs = live?.masquerade ?? planned?.bridge?.masquerade !== undefined;
    const others = othersOf(facts, outline.blocks ?? []);
    const subjects = [`nft:${NFT_TABLE}`];
    const fix = ['tke-eni status', 'iptables -t nat -S'];
    if (isOurs && others.length > 0) {
      const what = `the agent masquerades, and ${others.join(' and ')} does too`;
      return done([finding('gr-masquerade', { what, fix, subjects })]);
    }
    if (isOurs) return done([], ['the agent masquerades']);
    if (others.length > 0) return done([], [others.join(', ')]);
    if (leases.length === 0 && !isDefault) return done([], ['no program masquerades, and there are no such Pods']);
    const why = live === undefined ? '' : ` (${live.masqueradeWhy})`;
    const isWanted = live?.masqueradeWhy.startsWith('--gr-masquerade=') === true;
    const what = `no program masquerades what GlobalRoute Pods send to outside of the VPC${why}`;
    return done([
      finding('gr-masquerade', { what, fix, subjects, ...(isWanted ? { severity: 'info' as const } : {}) }),
    ]);
  },
};

/** A rule of the chain POSTROUTING that masquerades; kube-proxy has its own in another chain. */
const MASQUERADE_RULE = /^-A POSTROUTING (.*)-j MASQUERADE/;

function othersOf({ node, iptables }: DoctorFacts, blocks: readonly string[]): readonly string[] {
  const agents = findMasqueraders(node.host);
  if (agents.length > 0) return agents;
  const tables = ifKnown(iptables);
  const lines = tables === undefined ? [] : [tables.legacy, tables.nft].flatMap((each) => ifKnown(each) ?? []);
  const rule = lines.find((line) => {
    const [, matches] = MASQUERADE_RULE.exec(line) ?? [];
    return matches !== undefined && isForBlock(matches, blocks);
  });
  return rule === undefined ? [] : [`the rule "${rule}"`];
}

/** A rule for another source, such as that of a container engine, is not for GlobalRoute Pods. */
function isForBlock(matches: string, blocks: readonly string[]): boolean {
  const [, isNot, source] = /(! )?-s (\S+)/.exec(matches) ?? [];
  if (source === undefined || isNot !== undefined) return true;
  return blocks.some((block) => prefixContains(source, block.split('/')[0] ?? ''));
}
