import { hex } from '../../../dataplane/eni-mark.ts';
import { NFT_TABLE } from '../../../dataplane/numbers.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { isOurRule } from '../../../inspection/node/build-owner-index.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { isReadByIptables, optionOf, parseIptablesRules } from '../../../inspection/node/parse-iptables-rules.ts';
import { renderRule } from '../../../netlink/render-rule.ts';
import { buildOutline, type Outline } from './build-outline.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { type MarkUse, markUseOfIptables, markUseOfNft } from './mark-use.ts';

/**
 * Programs and the rules by which their use of marks is recognised.
 * @see their documentation: Calico iptablesMarkMask, tailscale tsconst.LinuxFwmarkMask
 */
const PROGRAMS: readonly (readonly [RegExp, string])[] = [
  [/ cali-/, 'Calico'],
  [/ CILIUM_/, 'Cilium'],
  [/ ts-|0x[48]0000\/0xff0000\b/, 'Tailscale'],
  [/ KUBE-|^nft ip6? kube-proxy /, 'kube-proxy'],
  [/ AWS-/, 'the AWS VPC CNI'],
];

/** Checks that no other program uses the bits of our packet mark. */
export const MARKS_CHECK: Check = {
  id: 'marks',
  scope: 'no other program uses the bits of our packet mark, in rules, nftables and iptables',
  finds: ['mark-collision'],
  evaluate: (facts) => {
    const outline = buildOutline(facts.node);
    const uses = [...ofRules(facts.node, outline), ...ofNft(facts), ...ofIptables(facts, outline)];
    if (facts.iptables.kind === 'unknown' && facts.node.host.nft.kind === 'unknown') {
      return skipped(`nft: ${facts.node.host.nft.why}; iptables: ${facts.iptables.why}`);
    }
    const clashing = uses.filter(({ writes, reads }) => ((writes | reads) & outline.markBits) !== 0);
    const byProgram = Map.groupBy(clashing, programOf);
    const findings = [...byProgram].map(([program, ofProgram]) => {
      const bits = ofProgram.reduce((sum, { writes, reads }) => sum | writes | reads, 0) & outline.markBits;
      const [first] = ofProgram;
      const location = first === undefined || first.where === program ? '' : `${first.where}: `;
      return finding('mark-collision', {
        what: `${program} uses bits ${hex(bits)} of the mark, ours are ${hex(outline.markBits)}: ${location}${first?.shown}`,
        fix: [
          'give the agent an --eni-mark-mask with 8 bits in a row that are free, or the other program another mask',
        ],
        subjects: [],
      });
    });
    return done(findings, [`our bits: ${hex(outline.markBits)}; ${uses.length} other uses of marks seen`]);
  },
};

const OTHER_RULE = 'a rule of another program';

function programOf({ where, shown }: MarkUse): string {
  return PROGRAMS.find(([pattern]) => pattern.test(`${where} ${shown}`))?.[1] ?? where;
}

function ofRules({ host }: NodeFacts, { tables }: Outline): readonly MarkUse[] {
  return (
    host.rules
      // A rule that leads to our tables is reported by RULES_CHECK.
      .filter((rule) => !isOurRule(rule) && (rule.fwmask ?? 0) !== 0 && !tables.has(rule.table))
      .map((rule) => {
        const shown = renderRule('add', rule).replace(/^ip (-6 )?rule add /, '');
        return { where: OTHER_RULE, writes: 0, reads: rule.fwmask ?? 0, shown };
      })
  );
}

/**
 * Returns uses of the mark in nftables. Tables of iptables-nft are skipped where iptables-save was read, because nft
 * does not show the content of their targets.
 */
function ofNft({ node: { host }, iptables }: DoctorFacts): readonly MarkUse[] {
  const objects = host.nft.kind === 'known' ? host.nft.value.objects : [];
  return objects.flatMap((object) => {
    if (isReadByIptables(iptables, object['rule'])) return [];
    const use = markUseOfNft(object);
    return use === undefined || use.where.startsWith(`nft inet ${NFT_TABLE} `) ? [] : [use];
  });
}

function ofIptables({ iptables }: DoctorFacts, { primary, enis }: Outline): readonly MarkUse[] {
  if (iptables.kind === 'unknown') return [];
  const ways = new Set([primary?.ifname, ...enis.map(({ ifname }) => ifname)]);
  return parseIptablesRules(iptables.value, []).rules.flatMap((rule) => {
    const iif = optionOf(rule.args, '-i');
    // Packets that arrive by other interfaces are not of Pods.
    if (iif !== undefined && !ways.has(iif) && !iif.startsWith('eni')) return [];
    const use = rule.chain === 'OUTPUT' ? undefined : markUseOfIptables(rule);
    return use === undefined ? [] : [use];
  });
}
