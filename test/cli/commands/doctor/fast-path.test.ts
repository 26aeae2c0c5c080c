import test from 'ava';
import { FAST_PATH_CHECK } from '../../../../cli/commands/doctor/check-fast-path.ts';
import type { AgentStatus, DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { isHostVethName } from '../../../../dataplane/host-veth-name.ts';
import { known } from '../../../../inspection/node/known.ts';
import type { TrafficFilterMessage } from '../../../../netlink/traffic-filter-message.ts';
import type { JsonObject } from '../../../../runtime/json.ts';
import { doctorFacts, healthyNode, iptables } from './facts.ts';
import { action, attribute, programFilter } from './traffic-bytes.ts';

/** Options of a u32 filter that redirects to the link 77. */
const REDIRECT = attribute(7, action('mirred', 1, 0, 4, 1, 1, 1, 77));

const BE_LIBERAL = 'net.netfilter.nf_conntrack_tcp_be_liberal';

function factsOf(
  fastPath: AgentStatus['fastPath'],
  {
    setting,
    filters = [],
    flowtables = [],
  }: {
    readonly setting?: string;
    readonly filters?: readonly TrafficFilterMessage[];
    readonly flowtables?: readonly object[];
  } = {},
): DoctorFacts {
  const facts = doctorFacts();
  if (facts.status.kind === 'unknown') throw new Error(facts.status.why);
  const node = healthyNode();
  const { sysctls, traffic } = node.host;
  const host = {
    ...node.host,
    sysctls: new Map([...sysctls, ...(setting === undefined ? [] : [[BE_LIBERAL, setting] as const])]),
    traffic: { ...traffic, filters: known(filters) },
    nft: known({ objects: flowtables.map((flowtable) => ({ flowtable })), ourTable: undefined }),
  };
  const { fastPath: _off, ...others } = facts.status.value;
  const status = known({ ...others, ...(fastPath && { fastPath }) });
  return { ...facts, status, node: { ...node, host } };
}

function textsOf(facts: DoctorFacts): readonly string[] {
  const verdict = FAST_PATH_CHECK.evaluate(facts);
  if (verdict.kind === 'skipped') return [`skipped: ${verdict.why}`];
  return [...verdict.findings.map(({ severity, what }) => `${severity}: ${what}`), ...verdict.notes];
}

const ON = { wanted: 'auto', mode: 'bpf', why: '' };
const OFF = { wanted: 'off', mode: 'off', why: '' };

test('fast-path: nothing is found where it is as asked for', (t) => {
  const filters = [
    programFilter(5, 'ingress', 'tke_fast'),
    programFilter(5, 'egress', 'tke_learn'),
    programFilter(6, 'ingress', 'tke_fast'),
    programFilter(7, 'ingress', 'cil_from'),
  ];
  t.deepEqual(textsOf(factsOf(ON, { setting: '1', filters })), ['bpf, on 2 links']);
  t.deepEqual(textsOf(factsOf(OFF, { setting: '0', filters: [programFilter(7, 'ingress', 'cil_from')] })), ['off']);
});

test('fast-path: names why it stays off, filters that are left, and a setting that others changed', (t) => {
  t.deepEqual(textsOf(factsOf({ ...OFF, wanted: 'bpf', why: 'the kernel has no BPF' })), [
    'warning: the fast path is asked for (--fast-path=bpf) and stays off: the kernel has no BPF',
    'off',
  ]);
  t.deepEqual(
    textsOf(
      factsOf(OFF, { filters: [programFilter(5, 'ingress', 'tke_fast'), programFilter(6, 'egress', 'tke_learn')] }),
    ),
    ['warning: the fast path is off, and 2 links have a filter of it', 'off'],
  );
  t.deepEqual(textsOf(factsOf(ON, { setting: '0' })), [
    `error: ${BE_LIBERAL} is 0 while the fast path is on: TCP connections of Pods stall`,
    'bpf, on 0 links',
  ]);
});

const CHAIN = { family: 'inet', table: 'fw', name: 'forward', type: 'filter', hook: 'forward', prio: 0 };
const QUEUE = { family: 'inet', table: 'fw', chain: 'forward', expr: [{ queue: { num: 5 } }] };

test('fast-path: names rules that judge each packet by itself while it is on, of nftables and both kinds of iptables', (t) => {
  const found = (status: typeof ON, objects: readonly object[], ...saved: Parameters<typeof iptables>) => {
    const facts = factsOf(status, { setting: '1' });
    const host = { ...facts.node.host, nft: known({ objects: objects as readonly JsonObject[], ourTable: undefined }) };
    return textsOf({ ...facts, node: { ...facts.node, host }, iptables: iptables(...saved) });
  };
  const rules = [{ chain: CHAIN }, { rule: QUEUE }];
  t.deepEqual(found(ON, rules, '', '*filter\n-A FORWARD -m limit --limit 5/sec -j ACCEPT\n'), [
    'warning: the fast path is on, and rules that judge each packet by itself see one packet a second of a learned flow: chain FORWARD of iptables-legacy (limit); chain inet fw forward (queue)',
    'bpf, on 0 links',
  ]);
  const jumps = Array.from({ length: 7 }, (_, n) => `-A FORWARD -j G${n}\n-A G${n} -m quota --quota 9 -j ACCEPT\n`);
  t.regex(found(ON, [], `*filter\n${jumps.join('')}`).join(), /G4 of iptables-nft \(quota\); and 2 more/);
  t.regex(
    found({ wanted: 'flowtable', mode: 'flowtable', why: '' }, rules, '').join(),
    /see no packet of a learned flow/,
  );
  t.deepEqual(found(OFF, rules, ''), ['off']);
});

test('fast-path: counts links of Pods that the bandwidth plugin has', (t) => {
  const facts = factsOf(ON, { setting: '1' });
  const { host } = facts.node;
  const [link] = host.links.filter(({ ifname }) => isHostVethName(ifname));
  if (link === undefined) throw new Error('the fixture has links of Pods');
  const ifb = { ...link, ifindex: 77, ifname: 'bwp0', kind: 'ifb' };
  const redirect = { ...programFilter(link.ifindex, 'ingress', ''), kind: 'u32', options: REDIRECT };
  const traffic = { ...host.traffic, filters: known([redirect]) };
  const node = { ...facts.node, host: { ...host, links: [...host.links, ifb], traffic } };
  t.deepEqual(textsOf({ ...facts, node }), ['bpf, on 0 links; 1 is left to the bandwidth plugin']);
});

test('fast-path: is off where the agent says nothing of it', (t) => {
  t.deepEqual(textsOf(factsOf(undefined)), ['off']);
});

const OURS = { family: 'inet', name: 'ft', table: 'tke_eni_flows' };
const THEIRS = { family: 'inet', name: 'ft', table: 'fw4', dev: ['eth0', 'eth1'] };

test('fast-path: a flowtable with links is as asked for; one that is missing, or left while it is off, is not', (t) => {
  const byFlowtable = { wanted: 'flowtable', mode: 'flowtable', why: '' };
  const found = (status: typeof ON, ...flowtables: readonly object[]) =>
    textsOf(factsOf(status, { setting: '1', flowtables }));
  t.deepEqual(found(byFlowtable, THEIRS, { ...OURS, dev: ['eth0', 'eth5', 'eni1'] }), ['flowtable, on 3 links']);
  t.deepEqual(found(byFlowtable, { ...OURS, dev: 'eth0' }), ['flowtable, on 1 links']);
  t.deepEqual(found(byFlowtable, THEIRS), [
    'warning: the fast path is a flowtable, and nftables table inet tke_eni_flows has none with links',
    'flowtable, on 0 links',
  ]);
  t.deepEqual(found(OFF, THEIRS), ['off']);
  t.deepEqual(found(OFF, { ...OURS, dev: 'eth0' }), [
    'warning: the fast path is off, and nftables table inet tke_eni_flows is left of it: flows go on by it',
    'off',
  ]);
});
