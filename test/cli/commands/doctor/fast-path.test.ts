import test from 'ava';
import { FAST_PATH_CHECK } from '../../../../cli/commands/doctor/check-fast-path.ts';
import type { AgentStatus, DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { known } from '../../../../inspection/node/known.ts';
import type { TrafficFilterMessage } from '../../../../netlink/traffic-filter-message.ts';
import { doctorFacts, healthyNode } from './facts.ts';
import { program } from './traffic-bytes.ts';

const BE_LIBERAL = 'net.netfilter.nf_conntrack_tcp_be_liberal';

function factsOf(
  fastPath: AgentStatus['fastPath'],
  { setting, filters = [] }: { readonly setting?: string; readonly filters?: readonly TrafficFilterMessage[] } = {},
): DoctorFacts {
  const facts = doctorFacts();
  if (facts.status.kind === 'unknown') throw new Error(facts.status.why);
  const node = healthyNode();
  const { sysctls, traffic } = node.host;
  const host = {
    ...node.host,
    sysctls: new Map([...sysctls, ...(setting === undefined ? [] : [[BE_LIBERAL, setting] as const])]),
    traffic: { ...traffic, filters: known(filters) },
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

/** A filter at the ingress of a link, as the kernel lists it. */
function filterOn(ifindex: number, name: string): TrafficFilterMessage {
  const place = { ifindex, handle: 1, parent: 0xfffffff2, protocol: 3, priority: 84, unknown: [] };
  return { ...place, kind: 'bpf', options: program(name) };
}

const ON = { wanted: 'auto', mode: 'bpf', why: '' };
const OFF = { wanted: 'off', mode: 'off', why: '' };

test('fast-path: nothing is found where it is as asked for', (t) => {
  const filters = [filterOn(5, 'tke_fast'), filterOn(5, 'tke_learn'), filterOn(6, 'tke_fast'), filterOn(7, 'cil_from')];
  t.deepEqual(textsOf(factsOf(ON, { setting: '1', filters })), ['bpf, on 2 links']);
  t.deepEqual(textsOf(factsOf(OFF, { setting: '0', filters: [filterOn(7, 'cil_from')] })), ['off']);
});

test('fast-path: names why it stays off, filters that are left, and a setting that others changed', (t) => {
  t.deepEqual(textsOf(factsOf({ ...OFF, wanted: 'bpf', why: 'the kernel has no BPF' })), [
    'warning: the fast path is asked for (--fast-path=bpf) and stays off: the kernel has no BPF',
    'off',
  ]);
  t.deepEqual(textsOf(factsOf(OFF, { filters: [filterOn(5, 'tke_fast'), filterOn(6, 'tke_learn')] })), [
    'warning: the fast path is off, and 2 links have a filter of it',
    'off',
  ]);
  t.deepEqual(textsOf(factsOf(ON, { setting: '0' })), [
    `error: ${BE_LIBERAL} is 0 while the fast path is on: TCP connections of Pods stall`,
    'bpf, on 0 links',
  ]);
});

test('fast-path: is off where the agent says nothing of it', (t) => {
  t.deepEqual(textsOf(factsOf(undefined)), ['off']);
});
