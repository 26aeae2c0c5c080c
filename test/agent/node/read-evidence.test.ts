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
