import test from 'ava';
import { diffHost } from '../../dataplane/diff.ts';
import { flowtableDeviceCommands, flowtableReplaceCommands } from '../../dataplane/fast-path/flowtable.ts';
import type { ObservedFlowtable, ObservedHost } from '../../dataplane/observed.ts';
import { inverseOf, type Operation, renderOperation, summarizeOperation } from '../../dataplane/operation.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { asPlanned } from '../inspection/judge/sight-fixture.ts';
import { eni, node, pod } from './fixtures.ts';

const POD = pod(5, 10);
const off = planNode(node, [eni(5)], [POD]);
const on = planNode({ ...node, fastPath: 'flowtable' }, [eni(5)], [POD]);
const DEVICES = [node.primary.ifname, 'eth5', POD.hostVeth.name];
const TEXT = on.flowtable?.text ?? '';
const CURRENT: ObservedFlowtable = { isCurrent: true, devices: DEVICES, restore: 'as it was' };

/** A kernel that is as planned, but for the flowtable. */
function operations(desired: typeof on, flowtable: ObservedFlowtable | undefined, more: Partial<ObservedHost> = {}) {
  const planned = asPlanned(desired);
  const nft = { text: desired.nft?.text ?? '', restore: '', ...(flowtable && { flowtable }) };
  return diffHost(desired, { ...planned, nft, ...more }).operations;
}

const replaced = (devices: readonly string[], before?: string): Operation => ({
  kind: 'replace-flowtable',
  commands: flowtableReplaceCommands(TEXT, devices),
  ...(before !== undefined && { before }),
});

test('diffHost: makes the flowtable where there is none, and does nothing where it is as planned', (t) => {
  t.deepEqual(operations(on, undefined), [replaced(DEVICES)]);
  t.deepEqual(operations(on, CURRENT), []);
  t.deepEqual(operations(off, undefined), []);
});

test('diffHost: replaces a table with other rules, and adds devices that are missing without that', (t) => {
  t.deepEqual(operations(on, { ...CURRENT, isCurrent: false }), [replaced(DEVICES, CURRENT.restore)]);
  t.deepEqual(operations(on, { ...CURRENT, devices: ['eth5'] }), [
    { kind: 'add-flow-devices', devices: [node.primary.ifname, POD.hostVeth.name] },
  ]);
});

test('diffHost: deletes the table when none is planned', (t) => {
  t.deepEqual(operations(off, { ...CURRENT, isCurrent: false }), [
    { kind: 'delete-flowtable', before: CURRENT.restore },
  ]);
});

test('diffHost: devices of links that went are no difference, until there are very many', (t) => {
  const gone = (count: number) => Array.from({ length: count }, (_, at) => `gone${at}`);
  t.deepEqual(operations(on, { ...CURRENT, devices: [...DEVICES, ...gone(256)] }), []);
  t.deepEqual(operations(on, { ...CURRENT, devices: [...DEVICES, ...gone(257)] }), [
    replaced(DEVICES, CURRENT.restore),
  ]);
});

test('diffHost: a missing link is left out, as it would fail the whole transaction, and a renamed one has its name of now', (t) => {
  const { links } = asPlanned(on);
  const without = links.filter(({ ifname }) => ifname !== 'eth5');
  const made = operations(on, undefined, { links: without }).filter(({ kind }) => kind === 'replace-flowtable');
  t.deepEqual(made, [replaced([node.primary.ifname, POD.hostVeth.name])]);
  const renamed = links.map((link) => (link.ifname === 'eth5' ? { ...link, ifname: 'ens5' } : link));
  t.deepEqual(
    operations(on, undefined, { links: renamed }).at(-1),
    replaced([node.primary.ifname, 'ens5', POD.hostVeth.name]),
  );
});

test('diffHost: neither replaces nor deletes a flowtable while an object cannot be read', (t) => {
  const unreadable = ['RTM_GETLINK: broken'];
  t.deepEqual(operations(off, CURRENT, { unreadable }), []);
  t.deepEqual(operations(on, { ...CURRENT, isCurrent: false }, { unreadable }), []);
});

test('inverseOf: of the operations of the flowtable', (t) => {
  const remove: Operation = { kind: 'delete-flowtable', before: 'a' };
  const add: Operation = { kind: 'add-flow-devices', devices: ['eth5'] };
  t.deepEqual(inverseOf(replaced(['eth0'])), {
    kind: 'delete-flowtable',
    before: flowtableReplaceCommands(TEXT, ['eth0']),
  });
  t.like(inverseOf(replaced(['eth0'], 'a')), { kind: 'replace-flowtable', commands: 'a' });
  t.deepEqual(inverseOf(remove), { kind: 'replace-flowtable', commands: 'a' });
  t.deepEqual(inverseOf(inverseOf(add)), add);
  t.is(renderOperation(inverseOf(add)), `nft -f - <<'EOF'\n${flowtableDeviceCommands(['eth5'], 'delete')}EOF`);
});

test('renderOperation: of the flowtable as commands for nft, in one line with its table only', (t) => {
  const text = renderOperation(replaced(['eth0']));
  t.true(text.startsWith("nft -f - <<'EOF'\ntable inet tke_eni_flows\ndelete table inet tke_eni_flows\n"));
  t.true(text.includes('devices = { "eth0" }'));
  t.is(summarizeOperation(replaced(['eth0'])), 'nft -f - # table inet tke_eni_flows');
});
