import { execFileSync } from 'node:child_process';
import test from 'ava';
import { assemble } from '../../../bpf/assemble.ts';
import { type BpfProgram, loadProgram } from '../../../bpf/bpf-program.ts';
import { exit, move } from '../../../bpf/source.ts';
import { openMonitorIn } from '../../../netlink/monitor.ts';
import type { Request } from '../../../netlink/request.ts';
import { filterProgram } from '../../../netlink/traffic-filter-message.ts';
import { parentOf, type TrafficFilterRef } from '../../../netlink/traffic-filter-request.ts';
import { TestNetns } from './support/test-netns.ts';

// Our requests for traffic control as tc(8) reads what they made.

type TcFilter = { readonly pref?: number; readonly options?: Readonly<Record<string, unknown>> };

const LONGEST_COMMAND_MS = 20_000;

function tcFilters(host: TestNetns, direction: string): readonly unknown[] {
  const args = ['-n', host.name, '-j', 'filter', 'show', 'dev', 'v0', direction];
  const list: readonly TcFilter[] = JSON.parse(
    execFileSync('tc', args, { encoding: 'utf8', timeout: LONGEST_COMMAND_MS }) || '[]',
  );
  return list
    .filter(({ options }) => options !== undefined)
    .map(({ pref, options }) => [pref, options?.['handle'], options?.['bpf_name'], options?.['direct-action']]);
}

/** A program that gives every packet the same verdict. */
const verdict = (result: number): BpfProgram =>
  loadProgram('verdict', assemble([move('r0', result), exit()], {}), 'GPL');

function change(host: TestNetns, request: Request): string {
  const [outcome] = host.rtnl.execute([request]);
  return outcome?.kind === 'error' ? outcome.error.code : (outcome?.kind ?? '');
}

test('a filter with our program is added, replaced, listed and deleted', (t) => {
  using host = new TestNetns();
  using first = verdict(-1);
  using second = verdict(0);
  const ifindex = host.addVethPair();
  const place: TrafficFilterRef = { ifindex, direction: 'ingress', priority: 84, handle: 1 };
  const replaceBy = ({ fd }: BpfProgram): string =>
    change(host, { object: 'filter', verb: 'replace', spec: { ...place, program: { fd, name: 'ours' } } });
  const ids = (): readonly unknown[] =>
    host.rtnl.trafficFilter
      .list({ ifindex, parent: parentOf('ingress') })
      .flatMap((filter) => filterProgram(filter) ?? []);

  t.is(replaceBy(first), 'EINVAL', 'without the discipline there is no place');
  t.is(change(host, { object: 'qdisc', verb: 'add', spec: { ifindex, kind: 'clsact' } }), 'ok');
  t.is(change(host, { object: 'qdisc', verb: 'add', spec: { ifindex, kind: 'clsact' } }), 'EEXIST');
  t.is(replaceBy(first), 'ok');
  t.deepEqual(tcFilters(host, 'ingress'), [[84, '0x1', 'ours', true]]);
  t.deepEqual(tcFilters(host, 'egress'), []);
  const seen = ({ info }: BpfProgram) => [{ name: 'ours', id: info.id, tag: info.tag, isDirectAction: true }];
  t.deepEqual(ids(), seen(first));
  t.is(replaceBy(second), 'ok');
  t.deepEqual(ids(), seen(second));
  t.is(change(host, { object: 'filter', verb: 'delete', spec: place }), 'ok');
  t.is(change(host, { object: 'filter', verb: 'delete', spec: place }), 'ENOENT');
  t.deepEqual(ids(), []);
  t.is(change(host, { object: 'qdisc', verb: 'delete', spec: { ifindex, kind: 'clsact' } }), 'ok');
  t.false(host.rtnl.qdisc.list().some(({ kind }) => kind === 'clsact'));
});

test('a filter keeps its program after the descriptor is closed, and goes with its link', (t) => {
  using host = new TestNetns();
  const ifindex = host.addVethPair();
  const at = { ifindex, parent: parentOf('egress') };
  {
    using program = verdict(-1);
    change(host, { object: 'qdisc', verb: 'add', spec: { ifindex, kind: 'clsact' } });
    const spec = {
      ifindex,
      direction: 'egress' as const,
      priority: 84,
      handle: 1,
      program: { fd: program.fd, name: 'ours' },
    };
    t.is(change(host, { object: 'filter', verb: 'replace', spec }), 'ok');
  }
  t.deepEqual(tcFilters(host, 'egress'), [[84, '0x1', 'ours', true]]);
  host.ip('link del v0');
  t.deepEqual(host.rtnl.trafficFilter.list(at), []);
});

test('disciplines and filters are notified, with who changed them; those that go with another object are not', async (t) => {
  using host = new TestNetns();
  using program = verdict(-1);
  const ifindex = host.addVethPair();
  using monitor = openMonitorIn(host.netns, { groups: ['tc', 'link'] });
  const place: TrafficFilterRef = { ifindex, direction: 'ingress', priority: 84, handle: 1 };
  const { fd } = program;
  host.rtnl.execute([
    { object: 'qdisc', verb: 'add', spec: { ifindex, kind: 'clsact' } },
    { object: 'filter', verb: 'replace', spec: { ...place, program: { fd, name: 'ours' } } },
    { object: 'filter', verb: 'delete', spec: place },
    { object: 'filter', verb: 'replace', spec: { ...place, program: { fd, name: 'ours' } } },
    { object: 'qdisc', verb: 'delete', spec: { ifindex, kind: 'clsact' } },
    { object: 'qdisc', verb: 'add', spec: { ifindex, kind: 'clsact' } },
    { object: 'link', verb: 'delete', spec: { ifindex } },
  ]);
  const seen: string[] = [];
  for await (const event of monitor) {
    if (event.kind === 'link' && event.op === 'del' && event.message.ifindex === ifindex) break;
    if (event.kind !== 'qdisc' && event.kind !== 'filter') continue;
    t.is(event.message.ifindex, ifindex);
    t.is(event.portid, host.rtnl.portid);
    seen.push(`${event.op} ${event.message.kind} ${event.kind === 'filter' ? event.message.handle : ''}`);
  }
  t.log(seen);
  t.deepEqual(seen, ['new clsact ', 'new bpf 1', 'del bpf 1', 'new bpf 1', 'del clsact ', 'new clsact ']);
});
