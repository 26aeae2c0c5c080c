import test from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { endCooldowns } from '../../../agent/attachment/end-cooldowns.ts';
import { addOf, createTestNode, type TestNode } from './fixtures.ts';

const PATIENT = new AbortController().signal;

const recorded = ({ deps }: TestNode) => deps.journal.load().cooldowns.map(({ ip }) => ip);

async function addAndDelete(node: TestNode, pod: number): Promise<void> {
  await attach(node.deps, addOf(pod), PATIENT);
  await detach(node.deps, addOf(pod));
}

test('endCooldowns: erases the record with the cooldown, whoever noticed its end', async (t) => {
  const node = createTestNode(3);
  t.teardown(node.close);
  await addAndDelete(node, 1);
  t.is(recorded(node).length, 1);
  endCooldowns(node.deps);
  t.is(recorded(node).length, 1);
  node.clock.advance(node.deps.settings.ipCooldownMs);
  // A failed ADD gives its address back, which must not swallow the end of other cooldowns.
  node.wiring.refusal = new Error('no');
  await attach(node.deps, addOf(2), PATIENT);
  node.clock.advance(node.deps.settings.ipCooldownMs);
  endCooldowns(node.deps);
  t.deepEqual(recorded(node), []);
  t.is(node.state.pool.counts().free, 3);
});

test('endCooldowns: erases a record that could not be erased before', async (t) => {
  const node = createTestNode(1);
  t.teardown(node.close);
  await addAndDelete(node, 1);
  node.clock.advance(node.deps.settings.ipCooldownMs);
  const { journal } = node.deps;
  const refuse = (): void => {
    throw new Error('disk');
  };
  const refusing = new Proxy(journal, {
    get: (whole, name) => (name === 'eraseCooldowns' ? refuse : Reflect.get(whole, name).bind(whole)),
  });
  t.throws(() => endCooldowns({ ...node.deps, journal: refusing }), { message: 'disk' });
  t.is(node.state.pool.counts().free, 1, 'the address serves all the same');
  t.is(recorded(node).length, 1);
  endCooldowns(node.deps);
  t.deepEqual(recorded(node), []);
});

test('cooldown: does not end when the wall clock jumps ahead, and not early over a restart', async (t) => {
  const node = createTestNode(1);
  t.teardown(node.close);
  await addAndDelete(node, 1);
  node.clock.setWallClock(node.clock.nowMs() + 3_600_000);
  endCooldowns(node.deps);
  t.is(node.state.pool.counts().cooling, 1);
  t.is(recorded(node).length, 1);
  node.clock.setWallClock(0);
  node.clock.advance(node.deps.settings.ipCooldownMs);
  endCooldowns(node.deps);
  t.is(node.state.pool.counts().free, 1);
});

test('attach: lets an address rest again when its old connections could not be flushed', async (t) => {
  const node = createTestNode(1);
  t.teardown(node.close);
  await addAndDelete(node, 1);
  const conntrack = { ...node.deps.conntrack, flush: () => Promise.reject(new Error('no conntrack')) };
  const failed = await attach({ ...node.deps, conntrack }, addOf(2), PATIENT);
  t.is(failed.kind, 'failed');
  t.like(node.state.pool.counts(), { cooling: 1, free: 0, leased: 0 });
  const again = await attach(node.deps, addOf(3), PATIENT);
  t.is(again.kind, 'attached');
  t.is(node.flushed.length, 1, 'the next one does not get it unflushed');
});
