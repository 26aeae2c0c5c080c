import test from 'ava';
import { readEvidence } from '../../../agent/node/read-evidence.ts';
import { DEFAULT_ENI_MARK_MASK, PRIORITY, RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';

const markRule = (fwmark: number, fwmask: number | undefined): RuleMessage => ({
  ...{
    family: 2,
    priority: PRIORITY.eniMark,
    table: 4007,
    action: 1,
    flags: 0,
    tos: 0,
    protocol: RTPROT_TKE_ENI,
    unknown: [],
  },
  fwmark,
  ...(fwmask === undefined ? {} : { fwmask }),
});
const slotOf = (rule: RuleMessage) =>
  readEvidence({ links: [], routes: [], rules: [rule] }, DEFAULT_ENI_MARK_MASK).enis[0]?.slot;

test('readEvidence: reads the slot of an ENI from its mark, by the mask that the rule has', (t) => {
  t.is(slotOf(markRule(0x30000, 0xff0000)), 3);
  t.is(slotOf(markRule(0x3000000, 0xff000000)), 3, 'written by an agent with another --eni-mark-mask');
  t.is(slotOf(markRule(0x300, 0xff00)), 3);
  t.is(slotOf(markRule(0x30000, undefined)), 3);
});

test('readEvidence: reads for which single addresses another program has a rule to table main', (t) => {
  const rule = (change: Partial<RuleMessage>): RuleMessage => ({
    ...markRule(1, 1),
    protocol: 2,
    table: 254,
    ...change,
  });
  const rules = [
    rule({ priority: 20, dst: '10.0.0.5/32' }),
    rule({ priority: 21, dst: '10.0.0.5/32' }),
    rule({ priority: 20, family: 10, dst: 'fd00::5/128' }),
    rule({ priority: 20, dst: '10.0.0.0/24' }),
    rule({ priority: 20, dst: '10.0.0.6/32', src: '10.0.0.7/32' }),
    rule({ priority: 20, dst: '10.0.0.8/32', table: 7 }),
    rule({ priority: PRIORITY.toPod, dst: '10.0.0.9/32', protocol: RTPROT_TKE_ENI }),
  ];
  const read = readEvidence({ links: [], routes: [], rules }, DEFAULT_ENI_MARK_MASK);
  t.deepEqual(read.ruledByOthers, ['10.0.0.5', 'fd00::5']);
});
