import test from 'ava';
import { numberBlocks } from '../../../../ipamd/config/cidr-blocks.ts';
import { observeBlocks } from '../../../../ipamd/guests/pod-cidrs/block-state.ts';
import { recordOf, stateOf } from '../../../../ipamd/guests/pod-cidrs/convert-record.ts';
import { decidePodCidrs } from '../../../../ipamd/guests/pod-cidrs/decide-pod-cidr.ts';

const HOLD_MS = 600_000;
const NOW = { monotonicMs: 10_000, wallMs: 1_790_000_000_000 };

const blocksOf = (maskSize: number, serviceCidr = '') =>
  numberBlocks({ clusterCidrs: ['10.4.0.0/20'], serviceCidr, maskSize });
const node = (name: string, podCidr?: string) => ({
  ...{ name, uid: `uid-${name}`, createdAt: `2026-01-01T00:00:0${name.slice(1)}Z`, machineId: `ins-${name}` },
  ...{ podCidrs: podCidr === undefined ? [] : [podCidr], isServed: true },
});

/** What a leader records while n1 and n2 have the first two blocks of 256 addresses. */
function record() {
  const blocks = blocksOf(24);
  const nodes = [node('n1', '10.4.0.0/24'), node('n2', '10.4.1.0/24')];
  const { state } = observeBlocks(blocks, stateOf(blocks, undefined, nodes, 0), nodes, 0);
  return { ...recordOf(state, { blocks, nodes, reserved: new Set<number>(), stopped: '' }, NOW), term: 1 };
}

/** Blocks that Nodes get from the next leader. */
function give(blocks: ReturnType<typeof blocksOf>, before: ReturnType<typeof record> | undefined, names: string[]) {
  const nodes = names.map((name) => node(name));
  const facts = { routes: 'none', reserved: new Set<number>(), paused: new Set<string>(), limit: 64 } as const;
  const state = stateOf(blocks, before, nodes, 0);
  const { gifts } = decidePodCidrs(state, { ...facts, blocks, nodes, monotonicMs: 1, holdMs: HOLD_MS });
  return Object.fromEntries(gifts.map((gift) => [gift.node.name, blocks.cidrOf(gift.block)]));
}

test('stateOf: a Node gets its block of the record, and a new one the next', (t) => {
  t.deepEqual(give(blocksOf(24), record(), ['n1', 'n3']), { n1: '10.4.0.0/24', n3: '10.4.2.0/24' });
});

test('stateOf: without a record the block after that of the youngest Node is next', (t) => {
  const blocks = blocksOf(24);
  t.is(stateOf(blocks, undefined, [node('n2', '10.4.5.0/24'), node('n1', '10.4.7.0/24')], 0).next, 6);
});

test('stateOf: of smaller blocks than before a Node gets a part of its own', (t) => {
  const wanted = { n1: '10.4.0.0/26', n2: '10.4.1.0/26', n3: '10.4.2.0/26' };
  t.deepEqual(give(blocksOf(26), record(), ['n1', 'n2', 'n3']), wanted);
});

test('stateOf: a block that is of Services now is given to nobody', (t) => {
  t.deepEqual(give(blocksOf(24, '10.4.0.0/24'), record(), ['n1']), { n1: '10.4.2.0/24' });
});
