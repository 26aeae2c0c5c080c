import test from 'ava';
import type { FilterState, HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type { ObservedFilters } from '../../dataplane/observed.ts';
import { inverseOf, type Operation, renderOperation } from '../../dataplane/operation.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { asPlanned } from '../inspection/judge/sight-fixture.ts';
import { eni, node, pod } from './fixtures.ts';

const POD = { ...pod(5, 10), hostVeth: { name: 'eni0123456789a', mac: '02:00:00:00:00:01', ifindex: 5010 } };
const off = planNode(node, [eni(5)], [POD]);
const on = planNode({ ...node, fastPath: 'bpf' }, [eni(5)], [POD]);
const PLANNED = on.filters ?? [];
const ATTACHED = PLANNED.map((filter) => ({ ...filter, isCurrent: true }));

/** A kernel that is as planned, with the nftables table too. */
const withTable = (plan: HostState) => ({ ...asPlanned(plan), nft: { text: plan.nft?.text ?? '', restore: '' } });

function lines(desired: HostState, filters: ObservedFilters | undefined, more: object = {}): readonly string[] {
  const { operations } = diffHost(desired, { ...withTable(on), ...(filters && { filters }), ...more });
  return operations.map((operation) => (operation.kind === 'load-nft' ? 'nft' : renderOperation(operation)));
}

const fast = (verb: string, dev: string) =>
  `tc filter ${verb} dev ${dev} ingress pref 84 protocol all handle 1 bpf${verb === 'replace' ? ' direct-action pinned tke_fast' : ''}`;
const learn = (verb: string, dev: string) =>
  `tc filter ${verb} dev ${dev} egress pref 84 protocol all handle 1 bpf${verb === 'replace' ? ' direct-action pinned tke_learn' : ''}`;

test('diffHost: attaches filters before the table that lets flows be learned; off, the table goes first', (t) => {
  const nothing = { ours: [], foreign: [] };
  t.deepEqual(lines(on, nothing, { nft: {} }), [
    fast('replace', 'eth5'),
    learn('replace', 'eth5'),
    fast('replace', POD.hostVeth.name),
    learn('replace', POD.hostVeth.name),
    'nft',
  ]);
  t.deepEqual(lines(off, { ours: ATTACHED, foreign: [] }), [
    'nft',
    fast('del', 'eth5'),
    learn('del', 'eth5'),
    fast('del', POD.hostVeth.name),
    learn('del', POD.hostVeth.name),
  ]);
});

test('diffHost: does nothing when all is attached, or when filters were not read', (t) => {
  t.deepEqual(lines(on, { ours: ATTACHED, foreign: [] }), []);
  t.deepEqual(lines(on, undefined, { filters: undefined }), []);
});

test('diffHost: attaches again what is missing, of another release, or not the program of this direction', (t) => {
  const [first, second, ...rest] = ATTACHED;
  if (first === undefined || second === undefined) return t.fail();
  t.deepEqual(lines(on, { ours: [second, ...rest], foreign: [] }), [fast('replace', 'eth5')]);
  t.deepEqual(lines(on, { ours: [{ ...first, isCurrent: false }, second, ...rest], foreign: [] }), [
    fast('replace', 'eth5'),
  ]);
  t.deepEqual(lines(on, { ours: [{ ...first, program: 'learn' }, second, ...rest], foreign: [] }), [
    fast('replace', 'eth5'),
  ]);
});

test('diffHost: leaves a link with a filter of others alone, takes ours away, and says so once for many links', (t) => {
  const shown = 'a filter ingress pref 1 bpf cil_from_netdev';
  const foreign = [{ ifindex: 5, ifname: 'eth5', shown }];
  t.deepEqual(lines(on, { ours: ATTACHED, foreign }), [fast('del', 'eth5'), learn('del', 'eth5')]);
  t.deepEqual(lines(on, { ours: ATTACHED.filter(({ ifindex }) => ifindex !== 5), foreign }), []);
  const pods = [1, 2, 3].map((last) => {
    const one = pod(5, last);
    return { ...one, hostVeth: { ...one.hostVeth, name: `eni0123456789${last}` } };
  });
  const many = pods.map(({ hostVeth }) => ({ ifindex: hostVeth.ifindex ?? 0, ifname: hostVeth.name, shown }));
  const desired = planNode({ ...node, fastPath: 'bpf' }, [eni(5)], pods);
  const elsewhere = { ifindex: 99, ifname: 'docker0', shown };
  const filters = { ours: [], foreign: [...many, elsewhere] };
  t.deepEqual(diffHost(desired, { ...asPlanned(desired), filters }).conflicts, [
    {
      kind: 'filter',
      message: `links of Pods: ${shown} is not ours; the fast path leaves such a link alone, its packets take the kernel's own way`,
    },
  ]);
});

test('diffHost: a filter on a former ENI goes, one on the link of a Pod that is about to go does not', (t) => {
  const without = planNode({ ...node, fastPath: 'bpf' }, [], []);
  const { operations } = diffHost(without, { ...withTable(without), filters: { ours: ATTACHED, foreign: [] } });
  t.deepEqual(operations.map(renderOperation), [fast('del', 'eth5'), learn('del', 'eth5')]);
});

test('diffHost: detaches nothing while an object cannot be read', (t) => {
  const unreadable = ['RTM_GETLINK: broken'];
  t.deepEqual(lines(off, { ours: ATTACHED, foreign: [] }, { unreadable, nft: { restore: '' } }), []);
});

test('inverseOf: of a filter', (t) => {
  const filter: FilterState = { ifindex: 5, ifname: 'eth5', direction: 'egress', program: 'learn' };
  const attach: Operation = { kind: 'attach-filter', filter };
  t.deepEqual(inverseOf(attach), { kind: 'detach-filter', filter });
  t.deepEqual(inverseOf(inverseOf(attach)), attach);
});
