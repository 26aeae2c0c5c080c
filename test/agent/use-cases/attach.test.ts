import test, { type ExecutionContext } from 'ava';
import { type AttachOutcome, attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { JournalError } from '../../../agent/journal/journal-error.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import { WireError } from '../../../dataplane/wire-error.ts';
import { addOf, createTestNode, PATIENT, type TestNode } from './fixtures.ts';

function node(t: ExecutionContext, ipCount = 3): TestNode {
  const made = createTestNode(ipCount);
  t.teardown(() => made.close());
  return made;
}

function leaseOf(t: ExecutionContext, outcome: AttachOutcome): Lease {
  if (outcome.kind !== 'attached') {
    t.fail(`${outcome.failure.code} ${outcome.failure.msg}`);
    throw new Error('the ADD failed');
  }
  return outcome.lease;
}

function codeOf(outcome: AttachOutcome): number {
  return outcome.kind === 'failed' ? outcome.failure.code : 0;
}

/** Journal, memory and kernel agree: the same addresses are held in all three. */
function assertAgreed(t: ExecutionContext, { deps, state, wiring }: TestNode, held: readonly string[]): void {
  const ipsOf = (leases: Iterable<Lease>) =>
    [...leases].flatMap(({ addresses }) => addresses.map(({ ip }) => ip)).sort();
  t.deepEqual(ipsOf(deps.journal.load().leases), held, 'journal');
  t.deepEqual(ipsOf(state.leases.values()), held, 'memory');
  t.deepEqual(wiring.ips, held, 'kernel');
  t.deepEqual([...state.pool.state.leases.values()].flat().sort(), held, 'pool');
}

test('attach: leases an address, wires it and records it as active', async (t) => {
  const n = node(t);
  const lease = leaseOf(t, await attach(n.deps, addOf(1), PATIENT));
  t.is(lease.state, 'active');
  t.is(lease.hostVeth?.ifindex, 11);
  t.is(lease.mtu, 1500);
  assertAgreed(t, n, ['10.0.0.10']);
  t.deepEqual(n.deps.journal.load().leases, [lease]);
});

test('attach: answers the same to all when it comes ten times at once', async (t) => {
  const n = node(t);
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => attach(n.deps, addOf(1), PATIENT)));
  t.is(new Set(outcomes.map((outcome) => leaseOf(t, outcome).hostVeth?.mac)).size, 1);
  assertAgreed(t, n, ['10.0.0.10']);
});

test('attach: refuses another netns for the same container and interface', async (t) => {
  const n = node(t);
  await attach(n.deps, addOf(1), PATIENT);
  t.is(codeOf(await attach(n.deps, addOf(1, { netns: '/run/netns/other' }), PATIENT)), 106);
  assertAgreed(t, n, ['10.0.0.10']);
});

test('attach: starts afresh when what it wired is gone', async (t) => {
  const n = node(t);
  await attach(n.deps, addOf(1), PATIENT);
  n.wiring.pods.clear();
  const again = leaseOf(t, await attach(n.deps, addOf(1), PATIENT));
  assertAgreed(t, n, [again.addresses[0]?.ip ?? '']);
});

test('attach: takes everything back when the kernel refuses, and the address rests', async (t) => {
  const n = node(t, 1);
  n.wiring.refusal = new WireError('KERNEL', 'RTM_NEWLINK: EPERM');
  t.is(codeOf(await attach(n.deps, addOf(1), PATIENT)), 105);
  assertAgreed(t, n, []);
  t.is(n.state.pool.counts().cooling, 1);
});

test('attach: names a taken interface by its own code', async (t) => {
  const n = node(t);
  n.wiring.refusal = new WireError('IFNAME_TAKEN', 'eth0 is there');
  t.is(codeOf(await attach(n.deps, addOf(1), PATIENT)), 106);
});

test('attach: takes everything back when the kernel does not hold what was written', async (t) => {
  const n = node(t);
  n.wiring.differences = ['route is missing'];
  const outcome = await attach(n.deps, addOf(1), PATIENT);
  t.is(codeOf(outcome), 105);
  t.true(outcome.kind === 'failed' && outcome.failure.details.includes('route is missing'));
  assertAgreed(t, n, []);
});

test('attach: takes everything back when the caller hangs up before the commit', async (t) => {
  const n = node(t);
  const caller = new AbortController();
  n.wiring.duringCheck = () => caller.abort('gone');
  t.is(codeOf(await attach(n.deps, addOf(1), caller.signal)), 11);
  assertAgreed(t, n, []);
});

test('attach: takes everything back when the deadline passes before the commit', async (t) => {
  const n = node(t);
  n.wiring.duringCheck = () => n.clock.advance(5_000);
  t.is(codeOf(await attach(n.deps, addOf(1, { deadlineAtMs: n.clock.nowMs() + 4_000 }), PATIENT)), 11);
  assertAgreed(t, n, []);
});

for (const stepMs of [3_600_000, -3_600_000]) {
  test(`attach: a step of the wall clock by ${stepMs} ms meanwhile does not move the deadline`, async (t) => {
    const serve = async (tookMs: number): Promise<number> => {
      const n = node(t);
      const deadlineAtMs = n.clock.nowMs() + 4_000;
      n.wiring.duringCheck = () => {
        n.clock.setWallClock(n.clock.nowMs() + stepMs);
        n.clock.advance(tookMs);
      };
      return codeOf(await attach(n.deps, addOf(1, { deadlineAtMs }), PATIENT));
    };
    t.is(await serve(3_000), 0);
    t.is(await serve(5_000), 11);
  });
}

test('attach: does nothing when the deadline has passed already', async (t) => {
  const n = node(t);
  t.is(codeOf(await attach(n.deps, addOf(1, { deadlineAtMs: n.clock.nowMs() - 1 }), PATIENT)), 11);
  t.is(n.state.pool.counts().cooling, 0);
});

test('attach: gives the address straight back when the intent cannot be recorded', async (t) => {
  const n = node(t, 1);
  const full: Pick<typeof n.deps.journal, 'putLease'> = {
    putLease: () => {
      throw new JournalError('JOURNAL_FULL', 'journal.db', 'no space left');
    },
  };
  const journal = Object.assign(Object.create(n.deps.journal) as typeof n.deps.journal, full);
  const outcome = await attach({ ...n.deps, journal }, addOf(1), PATIENT);
  t.is(codeOf(outcome), 5);
  t.true(outcome.kind === 'failed' && outcome.failure.details.includes('free space'));
  t.is(n.state.pool.counts().free, 1);
  t.deepEqual(n.wiring.ips, []);
});

test('attach: says that the ENI is gone when no ENI is ready for that reason', async (t) => {
  const n = node(t);
  n.state.readyEnis.clear();
  n.state.eniProblems.set('eni-1', { eniId: 'eni-1', kind: 'missing', text: 'no link with MAC 02:00:00:00:00:01' });
  const outcome = await attach(n.deps, addOf(1), PATIENT);
  t.is(codeOf(outcome), 102);
  t.true(outcome.kind === 'failed' && outcome.failure.details.includes('02:00:00:00:00:01'));
});

test('attach: keeps the MTU that was asked for below that of the ENI', async (t) => {
  const n = node(t);
  t.is(leaseOf(t, await attach(n.deps, addOf(1, { mtu: 1400 }), PATIENT)).mtu, 1400);
  t.is(leaseOf(t, await attach(n.deps, addOf(2, { mtu: 9000 }), PATIENT)).mtu, 1500);
});

test('detach: keeps the lease and the address while the kernel refuses', async (t) => {
  const n = node(t, 1);
  await attach(n.deps, addOf(1), PATIENT);
  n.wiring.unwireRefusal = new WireError('KERNEL', 'RTM_DELROUTE: EPERM');
  t.is((await detach(n.deps, addOf(1)))?.code, 105);
  t.is(n.state.leases.get('c1/eth0')?.state, 'releasing');
  t.is(codeOf(await attach(n.deps, addOf(2), PATIENT)), 101);
  n.wiring.unwireRefusal = undefined;
  t.is(await detach(n.deps, addOf(1)), undefined);
  assertAgreed(t, n, []);
});

test('detach: succeeds when only the journal refuses, and holds the address', async (t) => {
  const n = node(t, 1);
  await attach(n.deps, addOf(1), PATIENT);
  const broken = Object.assign(Object.create(n.deps.journal) as typeof n.deps.journal, {
    eraseLease: () => {
      throw new JournalError('JOURNAL_BROKEN', 'journal.db', 'cannot be written');
    },
  });
  t.is(await detach({ ...n.deps, journal: broken }, addOf(1)), undefined);
  t.deepEqual(n.wiring.ips, []);
  t.is(n.state.pool.counts().leased, 1);
  t.is(await detach(n.deps, addOf(1)), undefined);
  assertAgreed(t, n, []);
});

test('journal: holds the lease as pending while the kernel is being written', async (t) => {
  const n = node(t);
  const seen: string[] = [];
  n.wiring.duringCheck = () => seen.push(...n.deps.journal.load().leases.map(({ state }) => state));
  await attach(n.deps, addOf(1), PATIENT);
  t.deepEqual(seen, ['pending']);
});
