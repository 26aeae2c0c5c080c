import test from 'ava';
import { FAST_PATH_CHECK } from '../../../../cli/commands/doctor/check-fast-path.ts';
import type { AgentStatus, DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { known } from '../../../../inspection/node/known.ts';
import type { TrafficFilterMessage } from '../../../../netlink/traffic-filter-message.ts';
import { doctorFacts, healthyNode } from './facts.ts';
import { programFilter } from './traffic-bytes.ts';

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
