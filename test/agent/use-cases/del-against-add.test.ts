import test from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { collectInvalid } from '../../../agent/attachment/collect.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { addOf, createTestNode, PATIENT } from './fixtures.ts';

const C1 = { containerId: 'c1', ifName: 'eth0' };

test('detach: ends an ADD that waits for an address, and does not wait behind it', async (t) => {
  const n = createTestNode(0);
  t.teardown(() => n.close());
  const settings = { ...n.deps.settings, addWaitMs: 60_000, forceAfterMs: 60_000 };
  const adding = attach({ ...n.deps, settings }, addOf(1), PATIENT);
  const second = attach({ ...n.deps, settings }, addOf(1), PATIENT);
  t.is(await detach(n.deps, C1), undefined);
  for (const outcome of await Promise.all([adding, second])) {
    t.like(outcome, { kind: 'failed', failure: { code: 11, details: 'a DEL came for it' } });
  }
  t.is(n.state.leases.size, 0);
});

test('detach: ends an ADD that is being wired; nothing of it is left', async (t) => {
  const n = createTestNode(1);
  t.teardown(() => n.close());
  let deleting: Promise<unknown> = Promise.resolve();
  n.wiring.duringCheck = () => {
    deleting = detach(n.deps, C1);
  };
  t.like(await attach(n.deps, addOf(1), PATIENT), { kind: 'failed', failure: { code: 11 } });
  t.is(await deleting, undefined);
  t.is(n.state.leases.size, 0);
  t.deepEqual(n.wiring.ips, []);
});

test('detach: leaves alone what an ADD made after the DEL was asked for', async (t) => {
  const n = createTestNode(1);
  t.teardown(() => n.close());
  const askedMs = n.clock.bootMs();
  n.clock.advance(1);
  await attach(n.deps, addOf(1), PATIENT);
  t.is(await detach(n.deps, C1, askedMs), undefined);
  t.is(n.state.leases.size, 1);
  t.is(await detach(n.deps, C1, n.clock.bootMs()), undefined);
  t.is(n.state.leases.size, 0);
});

test('detach, collectInvalid: end what is older although the wall clock was set back since', async (t) => {
  const n = createTestNode(2);
  t.teardown(() => n.close());
  await attach(n.deps, addOf(1), PATIENT);
  await attach(n.deps, addOf(2), PATIENT);
  n.clock.setWallClock(n.clock.nowMs() - 3_600_000);
  n.clock.advance(1);
  await detach(n.deps, C1, n.clock.bootMs());
  t.deepEqual([...n.state.leases.keys()], ['c2/eth0']);
  n.absent.add(addOf(2).netns);
  t.deepEqual(await collectInvalid(n.deps, 'net', []), { released: 1, failed: 0 });
  t.is(n.state.leases.size, 0);
});
