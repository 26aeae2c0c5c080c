import type { RuleSpec } from '../../netlink/rule-message.ts';
import { FIB_RULE_IIF_DETACHED } from '../../netlink/uapi/fib-rules.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { addUpPair } from './address-cases.ts';
import { type ContractCase, codeOf } from './contract-case.ts';
import type { ContractNetns } from './machine.ts';

const brief = ({ rtnetlink }: ContractNetns, family = AF_INET) =>
  rtnetlink.rule
    .list({ family })
    .map(({ priority, table, src, fwmark, fwmask, protocol }) =>
      [priority, table, src, fwmark, fwmask, protocol].map((one) => one ?? '-').join(' '),
    );

/** Policy rules and neighbours. */
export const RULE_CASES: readonly ContractCase[] = [
  {
    what: 'the rules of a new namespace',
    run: ({ host }) => [brief(host), brief(host, AF_INET6)],
    sees: [
      ['0 255 - - - 2', '32766 254 - - - 2', '32767 253 - - - 2'],
      ['0 255 - - - 2', '32766 254 - - - 2'],
    ],
  },
  {
    what: 'a rule stands behind those of its priority, and is not added twice',
    run({ host }) {
      const { rule } = host.rtnetlink;
      const rules: readonly RuleSpec[] = [
        { priority: 1536, fwmark: 0x50000, fwmask: 0xff0000, table: 4007, protocol: 84 },
        { priority: 512, table: 3999, protocol: 84 },
        { priority: 1536, src: '10.0.0.4/32', table: 4007, protocol: 84 },
        { priority: 1536, fwmark: 9, table: 4007, protocol: 84 },
        { priority: 512, table: 3999, protocol: 85 },
      ];
      const first = rules.map((spec) => codeOf(() => rule.add(spec)));
      const second = rules.map((spec) => codeOf(() => rule.add(spec)));
      return [first, second, brief(host)];
    },
    sees: [
      ['ok', 'ok', 'ok', 'ok', 'ok'],
      ['EEXIST', 'EEXIST', 'EEXIST', 'EEXIST', 'EEXIST'],
      [
        ...['0 255 - - - 2', '512 3999 - - - 84', '512 3999 - - - 85', '1536 4007 - 327680 16711680 84'],
        ...['1536 4007 10.0.0.4/32 - - 84', '1536 4007 - 9 4294967295 84', '32766 254 - - - 2', '32767 253 - - - 2'],
      ],
    ],
  },
  {
    what: 'the first rule that has what is named is deleted',
    run({ host }) {
      const { rule } = host.rtnetlink;
      rule.add({ priority: 7, table: 4001, protocol: 84 });
      rule.add({ priority: 7, src: '10.0.0.4/32', table: 4001, protocol: 84 });
      rule.add({ priority: 7, src: '10.0.0.4/32', table: 4002, protocol: 84 });
      const remove = (spec: RuleSpec) => codeOf(() => rule.delete(spec));
      const codes = [
        remove({ priority: 8 }),
        remove({ priority: 7, protocol: 85 }),
        remove({ priority: 7, src: '10.0.0.5/32' }),
        remove({ priority: 7, src: '10.0.0.4/32' }),
        remove({ family: AF_INET6, priority: 7 }),
      ];
      const left = brief(host).slice(1, -2);
      return [codes, left, remove({ priority: 7, table: 4001 }), brief(host).slice(1, -2)];
    },
    sees: [
      ['ENOENT', 'ENOENT', 'ENOENT', 'ok', 'ENOENT'],
      ['7 4001 - - - 84', '7 4002 10.0.0.4/32 - - 84'],
      'ok',
      ['7 4002 10.0.0.4/32 - - 84'],
    ],
  },
  {
    what: 'a rule for all stands in the way of none, and is refused where one for some is',
    run({ host }) {
      const { rule } = host.rtnetlink;
      const add = (spec: RuleSpec) => codeOf(() => rule.add({ table: 4001, protocol: 84, ...spec }));
      return [
        ...[add({ priority: 7, src: '10.0.0.4/32' }), add({ priority: 7 }), add({ priority: 8 })],
        ...[add({ priority: 8, src: '10.0.0.4/32' }), add({ priority: 9, dst: '10.0.0.4/32' }), add({ priority: 9 })],
      ];
    },
    sees: ['ok', 'EEXIST', 'ok', 'ok', 'ok', 'EEXIST'],
  },
  {
    what: 'a mark that is named without a mask deletes no rule with a mask of its own',
    run({ host }) {
      const { rule } = host.rtnetlink;
      rule.add({ priority: 7, fwmark: 1, fwmask: 0xff, table: 4001, protocol: 84 });
      const remove = (spec: RuleSpec) => codeOf(() => rule.delete(spec));
      return [remove({ priority: 7, fwmark: 1 }), remove({ priority: 7, fwmark: 1, fwmask: 0xff })];
    },
    sees: ['ENOENT', 'ok'],
  },
  {
    what: 'a rule may be appended beside its twin, and what was read deletes it',
    run({ host }) {
      const { rule } = host.rtnetlink;
      const spec = { priority: 7, fwmark: 1, fwmask: 0xff, iifname: 'gone0', table: 4001, protocol: 84 };
      const outcomes = host.rtnetlink.execute([
        { object: 'rule', verb: 'add', spec },
        { object: 'rule', verb: 'append', spec },
      ]);
      const ours = rule.list({ family: AF_INET, protocol: 84 });
      for (const one of ours) rule.delete(one);
      return [
        outcomes.map(({ kind }) => kind),
        ours.map(({ flags }) => flags),
        rule.list({ family: AF_INET, protocol: 84 }),
      ];
    },
    sees: [['ok', 'ok'], [FIB_RULE_IIF_DETACHED, FIB_RULE_IIF_DETACHED], []],
  },
  {
    what: 'neighbours are added once, replaced and deleted, and go when their link goes down',
    run({ host }) {
      const ifindex = addUpPair(host);
      const { neigh, link } = host.rtnetlink;
      const spec = { ifindex, dst: '169.254.1.1', lladdr: '02:00:00:00:00:01' };
      const codes = [codeOf(() => neigh.add(spec)), codeOf(() => neigh.add(spec))];
      neigh.replace({ ...spec, lladdr: '02:00:00:00:00:02' });
      neigh.replace({ ifindex, dst: 'fe80::1', lladdr: '02:00:00:00:00:03' });
      const listed = (family?: number) =>
        neigh
          .list({ ifindex, ...(family !== undefined && { family }) })
          .filter(({ state }) => state === 0x80)
          .map(({ dst, lladdr }) => `${dst} ${lladdr}`)
          .toSorted();
      const during = [listed(), listed(AF_INET)];
      neigh.delete({ ifindex, dst: 'fe80::1' });
      const gone = [
        codeOf(() => neigh.delete({ ifindex, dst: '169.254.9.9' })),
        codeOf(() => neigh.add({ ...spec, ifindex: 999 })),
      ];
      const left = listed();
      link.set({ ifindex, up: false });
      return { codes, during, gone, left, down: listed() };
    },
    sees: {
      codes: ['ok', 'EEXIST'],
      during: [['169.254.1.1 02:00:00:00:00:02', 'fe80::1 02:00:00:00:00:03'], ['169.254.1.1 02:00:00:00:00:02']],
      gone: ['ENOENT', 'ENODEV'],
      left: ['169.254.1.1 02:00:00:00:00:02'],
      down: [],
    },
  },
  {
    what: 'neighbours go when their link no longer asks for any, if it is up',
    run({ host }) {
      const { neigh, link } = host.rtnetlink;
      const counts = [true, false].map((up, at) => {
        const ifindex = link.add({ kind: 'veth', ifname: `v${at}`, peer: { ifname: `w${at}` }, up });
        neigh.add({ ifindex, dst: '169.254.1.1', lladdr: '02:00:00:00:00:01' });
        link.set({ ifindex, arp: false });
        return neigh.list({ ifindex, family: AF_INET }).length;
      });
      return counts;
    },
    sees: [0, 1],
  },
  {
    what: 'neighbours go when the address of their link is set, also to what it was',
    run({ host }) {
      const { neigh, link } = host.rtnetlink;
      const ifindex = addUpPair(host);
      return ['02:00:00:00:00:0a', '02:00:00:00:00:0c'].map((address) => {
        neigh.replace({ ifindex, dst: '169.254.1.1', lladdr: '02:00:00:00:00:01' });
        link.set({ ifindex, address });
        return neigh.list({ ifindex, family: AF_INET }).length;
      });
    },
    sees: [0, 0],
  },
];
