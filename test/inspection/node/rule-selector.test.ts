import test from 'ava';
import { ruleElement, ruleSelector } from '../../../inspection/node/rule-selector.ts';
import { renderRule } from '../../../netlink/render-rule.ts';
import { FIB_RULE_INVERT } from '../../../netlink/uapi/fib-rules.ts';
import { AF_INET, AF_INET6 } from '../../../netlink/uapi/netlink.ts';

test('ruleElement: a rule has one name, planned or read', (t) => {
  const pairs = [
    [
      { family: 4, priority: 1536, table: 4003, fwmark: 0x10000, fwmask: 0xff0000 },
      {
        family: AF_INET,
        priority: 1536,
        table: 4003,
        fwmark: 0x10000,
        fwmask: 0xff0000,
        protocol: 84,
        flags: 0,
        tos: 0,
      },
    ],
    [
      { family: 6, priority: 1537, table: 4003, src: 'fd00::2/128' },
      { family: AF_INET6, priority: 1537, table: 4003, src: 'fd00::2' },
    ],
    [
      { family: 4, priority: 900, table: 4003, src: '0.0.0.0/0', fwmark: 1, fwmask: 0xffffffff },
      { family: AF_INET, priority: 900, table: 254, fwmark: 1 },
    ],
  ] as const;
  for (const [planned, read] of pairs) t.is(ruleElement(planned), ruleElement(read));
  t.deepEqual(
    pairs.map(([planned]) => ruleElement(planned)),
    ['rule:4:1536:from all fwmark 0x10000/0xff0000', 'rule:6:1537:from fd00::2', 'rule:4:900:from all fwmark 0x1'],
  );
});

test('ruleSelector: says every selector, so that rules which differ in one have two names', (t) => {
  const range = { start: 1, end: 2 };
  const rules = [
    {},
    { flags: FIB_RULE_INVERT },
    { src: '10.0.0.0/24' },
    { dst: '10.0.0.0/24' },
    { tos: 16 },
    { fwmark: 1 },
    { fwmark: 1, fwmask: 3 },
    { iifname: 'eth0' },
    { oifname: 'eth0' },
    { uidRange: range },
    { ipProto: 6 },
    { sportRange: range },
    { dportRange: range },
  ].map((rule) => ({ family: AF_INET, priority: 5, table: 254, ...rule }));
  t.is(new Set(rules.map(ruleSelector)).size, rules.length);
  t.is(new Set(rules.map((rule) => renderRule('add', rule))).size, rules.length);
});
