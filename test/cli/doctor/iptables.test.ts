import test from 'ava';
import { IPTABLES_CHECK, KUBE_PROXY_CHECK } from '../../../cli/doctor/find-iptables.ts';
import { markUseOfIptables, markUseOfNft } from '../../../cli/doctor/find-mark-uses.ts';
import { MARKS_CHECK } from '../../../cli/doctor/find-marks.ts';
import { known, unknown } from '../../../cli/node/known.ts';
import type { NodeFacts } from '../../../cli/node/node-facts.ts';
import { doctorFacts, healthyNode, idsOf, iptables, nodeWith } from './facts.ts';

const DOCKER = '*filter\n:FORWARD DROP [0:0]\n-A FORWARD -o docker0 -j ACCEPT\n';

const IPTABLES = [
  ['there are none', iptables(''), []],
  ['only nft has rules', iptables('*filter\n-A INPUT -j ACCEPT\n'), []],
  ['legacy has tables without rules', iptables('*filter\n-A INPUT -j ACCEPT\n', '*filter\n:INPUT ACCEPT [0:0]\n'), []],
  [
    'both have rules',
    iptables('*filter\n-A INPUT -j ACCEPT\n', '*nat\n-A POSTROUTING -j MASQUERADE\n'),
    ['iptables-mix'],
  ],
  ['FORWARD drops and accepts Docker alone', iptables(DOCKER), ['forward-policy-drop']],
  ['FORWARD drops and accepts the Pods’ network', iptables(`${DOCKER}-A FORWARD -s 10.0.0.0/8 -j ACCEPT\n`), []],
  ['FORWARD drops and accepts Pods’ interfaces', iptables(`${DOCKER}-A FORWARD -i eni+ -j ACCEPT\n`), []],
  [
    'FORWARD drops and accepts another network',
    iptables(`${DOCKER}-A FORWARD -s 192.168.0.0/16 -j ACCEPT\n`),
    ['forward-policy-drop'],
  ],
  ['FORWARD accepts', iptables('*filter\n:FORWARD ACCEPT [0:0]\n'), []],
] as const;

for (const [when, facts, finds] of IPTABLES) {
  test(`iptables: finds ${finds.join(', ') || 'nothing'} when ${when}`, (t) => {
    t.deepEqual(idsOf(IPTABLES_CHECK, doctorFacts({ iptables: facts })), [...finds]);
  });
}

const KUBE_IPTABLES = '*nat\n:KUBE-SVC-ABC - [0:0]\n-A KUBE-SVC-ABC -j KUBE-SEP-1\n';

test('kube-proxy: finds leftovers of another mode, and nothing of one', (t) => {
  const one = doctorFacts({ iptables: iptables(KUBE_IPTABLES) });
  t.deepEqual(idsOf(KUBE_PROXY_CHECK, one), []);
  const nft = known({ objects: [{ table: { family: 'ip', name: 'kube-proxy' } }], ourTable: undefined });
  const node: NodeFacts = { ...healthyNode(), host: { ...healthyNode().host, nft } };
  t.deepEqual(idsOf(KUBE_PROXY_CHECK, { ...one, node }), ['kube-proxy-mode']);
});

test('kube-proxy: says which mode it sees', (t) => {
  const verdict = KUBE_PROXY_CHECK.judge(doctorFacts({ iptables: iptables(KUBE_IPTABLES) }));
  t.deepEqual(verdict.kind === 'done' ? verdict.notes : [], ['iptables (chains KUBE-SVC-…)']);
});

test('kube-proxy: sees the mode in what nft lists where iptables is not installed', (t) => {
  const objects = [{ rule: { family: 'ip', table: 'nat', chain: 'KUBE-SVC-ABC', expr: [] } }];
  const node = { ...healthyNode(), host: { ...healthyNode().host, nft: known({ objects, ourTable: undefined }) } };
  const missing = unknown('iptables-nft-save is not installed here', '');
  const facts = doctorFacts({ node, iptables: known({ legacyTables: [], legacy: known([]), nft: missing }) });
  const verdict = KUBE_PROXY_CHECK.judge(facts);
  t.deepEqual(verdict.kind === 'done' ? verdict.notes : [], ['iptables (chains KUBE-SVC-…)']);
  t.deepEqual(idsOf(IPTABLES_CHECK, facts), []);
});

const WRITES = [
  ['--set-xmark 0x40000/0x40000', 0x40000],
  ['--set-xmark 0x4000/0x0', 0x4000],
  ['--set-xmark 0x1/0xffffffff', 0xffffffff],
  ['--set-mark 0x1', 0xffffffff],
  ['--set-mark 0x1/0xff', 0xff],
  ['--or-mark 0x80', 0x80],
  ['--and-mark 0xff00ffff', 0x00ff0000],
  ['--restore-mark', 0xffffffff],
  ['--restore-mark --nfmask 0x80 --ctmask 0x80', 0x80],
  ['--save-mark --nfmask 0xff --ctmask 0xff', 0xff],
  ['--save-mark', 0xffffffff],
] as const;

for (const [option, bits] of WRITES) {
  test(`markUseOfIptables: tells which bits change: ${option}`, (t) => {
    const rule = {
      backend: 'nft',
      table: 'mangle',
      chain: 'PREROUTING',
      words: ['-j', 'MARK', ...option.split(' ')],
    } as const;
    t.is(markUseOfIptables(rule)?.writes, bits);
  });
}

const MARK = { meta: { key: 'mark' } };
const NFT_WRITES = [
  ['mark set 1', 1, 0xffffffff],
  ['mark set mark | 0x4000', { '|': [MARK, 0x4000] }, 0x4000],
  ['mark set mark & 0xff00ffff', { '&': [MARK, 0xff00ffff] }, 0x00ff0000],
  ['mark set mark & 0xff00ffff | 0x40000', { '|': [{ '&': [MARK, 0xff00ffff] }, 0x40000] }, 0x00ff0000],
  ['mark set ct mark', { ct: { key: 'mark' } }, 0xffffffff],
] as const;

for (const [text, value, bits] of NFT_WRITES) {
  test(`markUseOfNft: tells which bits change: ${text}`, (t) => {
    const expr = [{ mangle: { key: MARK, value } }];
    t.is(markUseOfNft({ rule: { family: 'inet', table: 'x', chain: 'y', expr } })?.writes, bits);
  });
}

test('markUseOfNft: tells which bits of the connection mark change', (t) => {
  const key = { ct: { key: 'mark' } };
  const useOf = (value: unknown) =>
    markUseOfNft({ rule: { family: 'ip', table: 'x', chain: 'y', expr: [{ mangle: { key, value } }] } })?.writes;
  t.deepEqual([useOf(MARK), useOf({ '|': [key, 0x80] })], [0xffffffff, 0x80]);
});

test('markUseOfNft: tells which bits a masked comparison reads', (t) => {
  const expr = [{ match: { op: '==', left: { '&': [MARK, 0xff0000] }, right: 0x40000 } }];
  t.is(markUseOfNft({ rule: { family: 'ip', table: 'x', chain: 'y', expr } })?.reads, 0xff0000);
});

const CALICO =
  '*mangle\n-A cali-PREROUTING -j MARK --set-xmark 0x10000/0x10000\n-A cali-FORWARD -m mark --mark 0x10000/0x10000 -j ACCEPT\n';
const KUBE =
  '*nat\n-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\n-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN\n';
const TAILSCALE_RULE = {
  family: 2,
  tos: 0,
  action: 1,
  flags: 0,
  priority: 5210,
  table: 254,
  fwmark: 0x80000,
  fwmask: 0xff0000,
  unknown: [],
};

const MARKS = [
  ['nobody uses any', doctorFacts(), []],
  ['kube-proxy uses its own', doctorFacts({ iptables: iptables(KUBE) }), []],
  ['Calico uses some of ours, told once', doctorFacts({ iptables: iptables(CALICO) }), ['mark-collision']],
  [
    'Calico uses them and rules are per Pod',
    doctorFacts({ iptables: iptables(CALICO), node: healthyNode({ ruleMode: 'per-pod' }) }),
    [],
  ],
  [
    'a rule is about the bits that Tailscale uses',
    doctorFacts({ node: nodeWith(({ rules }) => ({ rules: [...rules, TAILSCALE_RULE] })) }),
    ['mark-collision'],
  ],
  [
    'a program marks what came in by its own interface',
    doctorFacts({ iptables: iptables('*mangle\n-A PREROUTING -i wg0 -j MARK --set-mark 0x1\n') }),
    [],
  ],
  [
    'a program overwrites the whole mark of what comes in',
    doctorFacts({ iptables: iptables('*mangle\n-A PREROUTING -j MARK --set-mark 0x1\n') }),
    ['mark-collision'],
  ],
  [
    'a program marks what the node itself sends',
    doctorFacts({ iptables: iptables('*mangle\n-A OUTPUT -j MARK --set-mark 0x1\n') }),
    [],
  ],
] as const;

for (const [when, facts, finds] of MARKS) {
  test(`marks: finds ${finds.join(', ') || 'nothing'} when ${when}`, (t) => {
    t.deepEqual(idsOf(MARKS_CHECK, facts), [...finds]);
  });
}
