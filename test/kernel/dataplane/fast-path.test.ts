import test from 'ava';
import { applyOperations } from '../../../dataplane/apply.ts';
import type { HostState } from '../../../dataplane/desired.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { type FlowPrograms, openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { openFilterReader } from '../../../dataplane/fast-path/observe-filters.ts';
import type { Kernel } from '../../../dataplane/kernel.ts';
import { observeHost } from '../../../dataplane/observe.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { podOf, type TestNode, withTestNode } from './test-node.ts';

// The fast path's filters on a node with two ENIs and a Pod, as tc(8) reads them.

const POD_LINK = 'eni0123456789a';

/** Filters of `dev direction`, by the name of their program. */
const ALL = [
  ...[POD_LINK, 'eth5', 'eth6'].flatMap((dev) => [`${dev} ingress tke_fast`, `${dev} egress tke_learn`]),
] as const;

class FastNode {
  readonly on: HostState;
  readonly off: HostState;
  readonly kernel: Kernel;
  readonly #node: TestNode;

  constructor(node: TestNode, flows: FlowPrograms) {
    this.#node = node;
    this.kernel = { ...node.kernel, flows };
    node.ip('link', 'add', POD_LINK, 'type', 'veth', 'peer', 'name', 'pod0');
    const { ifindex = 0 } = node.kernel.rtnetlink.link.get({ ifname: POD_LINK }) ?? {};
    const [first = { table: 0 }] = node.enis;
    const pod = podOf(first, ['10.0.5.10'], { hostVeth: { name: POD_LINK, mac: '02:00:00:00:00:07', ifindex } });
    this.on = planNode({ ...node.network, fastPath: 'bpf' }, node.enis, [pod]);
    this.off = planNode(node.network, node.enis, [pod]);
  }

  /** Observes, compares and applies; returns the lines of traffic control, and the conflicts. */
  async reach(desired: HostState): Promise<readonly string[]> {
    const lines: string[] = [];
    const { operations, conflicts } = diffHost(desired, await observeHost(this.kernel, desired));
    await applyOperations(this.kernel, operations, { onOperation: (_operation, line) => lines.push(line) });
    return [
      ...lines.filter((line) => line.startsWith('tc ') || line.includes('liberal')),
      ...conflicts.filter(({ kind }) => kind === 'filter').map(({ message }) => message),
    ];
  }

  tc(line: string): string {
    return this.#node.run('tc', ...line.split(' '));
  }

  disciplines(): readonly string[] {
    const list: readonly { readonly kind: string; readonly dev: string }[] = JSON.parse(this.tc('-j qdisc show'));
    return list
      .filter(({ kind }) => kind === 'clsact' || kind === 'ingress')
      .map(({ dev }) => dev)
      .sort();
  }

  filters(): readonly string[] {
    return this.disciplines().flatMap((dev) =>
      ['ingress', 'egress'].flatMap((direction) => {
        const list: readonly { readonly options?: { readonly bpf_name?: string } }[] = JSON.parse(
          this.tc(`-j filter show dev ${dev} ${direction}`),
        );
        return list.flatMap(({ options }) =>
          options === undefined ? [] : [`${dev} ${direction} ${options.bpf_name ?? '?'}`],
        );
      }),
    );
  }
}

async function withFastNode(run: (node: FastNode) => Promise<void>): Promise<void> {
  await withTestNode(async (node) => {
    using flows = openFlowPrograms();
    await run(new FastNode(node, flows));
  });
}

test('on, then off: filters, the chain and the setting come, and go without a trace', async (t) => {
  await withTestNode(async (test) => {
    using flows = openFlowPrograms();
    const node = new FastNode(test, flows);
    await node.reach(node.off);
    t.deepEqual(node.disciplines(), []);
    const chain = () => test.run('nft', 'list', 'table', 'inet', 'tke_eni').includes('chain learn');
    t.is((await node.reach(node.on)).filter((line) => line.startsWith('tc ')).length, ALL.length);
    t.deepEqual(node.filters(), ALL);
    t.true(chain());
    t.is(test.run('sysctl', '-n', 'net.netfilter.nf_conntrack_tcp_be_liberal').trim(), '1');
    t.deepEqual(await node.reach(node.on), [], 'nothing is left to do');
    await node.reach(node.off);
    t.deepEqual(node.disciplines(), []);
    t.false(chain());
    t.deepEqual(await node.reach(node.off), []);
  });
});

test('repair: a deleted filter, a deleted discipline, a program of before', async (t) => {
  await withFastNode(async (node) => {
    await node.reach(node.on);
    node.tc('filter del dev eth5 ingress');
    t.is((await node.reach(node.on)).length, 1);
    node.tc(`qdisc del dev ${POD_LINK} clsact`);
    t.is((await node.reach(node.on)).length, 2);
    t.deepEqual(node.filters(), ALL);
    using next = openFlowPrograms();
    const later = { ...node.kernel, flows: next };
    const { operations } = diffHost(node.on, await observeHost(later, node.on));
    t.is(operations.length, ALL.length, 'each filter gets the program that is loaded now');
    await applyOperations(later, operations);
    t.deepEqual(diffHost(node.on, await observeHost(later, node.on)).operations, []);
    t.deepEqual(node.filters(), ALL);
  });
});

test('a filter of others: the link is left alone, and is ours again when it is gone', async (t) => {
  await withFastNode(async (node) => {
    node.tc(`qdisc add dev ${POD_LINK} ingress`);
    await node.reach(node.on);
    t.deepEqual(node.filters(), ALL.slice(2), 'as with the bandwidth plugin');
    node.tc('filter add dev eth5 egress pref 1 protocol all u32 match u32 0 0 flowid 1:1');
    const lines = await node.reach(node.on);
    t.deepEqual(lines, [
      'tc filter del dev eth5 ingress pref 84 protocol all handle 1 bpf',
      'tc filter del dev eth5 egress pref 84 protocol all handle 1 bpf',
      "eth5: a filter egress pref 1 u32 is not ours; the fast path leaves such a link alone, its packets take the kernel's own way",
      "links of Pods: a discipline ingress is not ours; the fast path leaves such a link alone, its packets take the kernel's own way",
    ]);
    t.deepEqual(node.filters(), ['eth5 egress ?', 'eth5 egress ?', ...ALL.slice(4)]);
    node.tc('filter del dev eth5 egress');
    node.tc(`qdisc del dev ${POD_LINK} ingress`);
    await node.reach(node.on);
    t.deepEqual(node.filters(), ALL);
  });
});

test('openFilterReader: reads again what it was told of, and forgets links that are gone', async (t) => {
  await withFastNode(async (node) => {
    await node.reach(node.on);
    const reader = openFilterReader(node.kernel);
    const names = new Map(node.kernel.rtnetlink.link.list().map(({ ifindex, ifname }) => [ifindex, ifname]));
    const seen = () => reader.read(names).ours.map(({ ifname, direction }) => `${ifname} ${direction}`);
    t.is(seen().length, ALL.length);
    node.tc('filter del dev eth5 ingress');
    t.is(seen().length, ALL.length, 'nothing was notified');
    const { ifindex = 0 } = node.kernel.rtnetlink.link.get({ ifname: 'eth5' }) ?? {};
    reader.invalidate(ifindex);
    t.deepEqual(
      seen().filter((line) => line.startsWith('eth5')),
      ['eth5 egress'],
    );
    const { ifindex: other = 0 } = node.kernel.rtnetlink.link.get({ ifname: 'eth6' }) ?? {};
    node.tc('qdisc del dev eth6 clsact');
    t.is(seen().length, ALL.length - 1, 'as if it was away: nothing is notified');
    reader.forget(other);
    t.is(seen().length, ALL.length - 3);
    reader.invalidate();
    t.is(seen().length, ALL.length - 3);
    names.delete(ifindex);
    t.is(seen().length, ALL.length - 4);
    reader.invalidate();
    t.is(reader.read(names).ours.length, ALL.length - 4);
  });
});
