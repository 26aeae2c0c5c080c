import test from 'ava';
import fc from 'fast-check';
import type { LockRef } from '../../kube/election/lock-record.ts';
import type { Leadership } from '../../kube/election/term.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { KubeError } from '../../kube/kube-error.ts';
import { type LeaderElectionOptions, runAsLeader } from '../../kube/leader-election.ts';
import { CONFIG_MAPS, LEASES } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type InProcessApi, startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { assertLaw } from '../support/law.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const LOCK = { kind: 'configmap', namespace: 'kube-system', name: 'lock' } as const;
const TIMES = { leaseMs: 30_000, renewMs: 10_000, retryMs: 2000 };

type Office = { readonly who: string; readonly epoch: number; readonly fromMs: number; toMs: number };

/** Runs a candidate whose terms are written down in true time. */
function runCandidate(
  who: string,
  clock: VirtualClock,
  offices: Office[],
  options: Pick<LeaderElectionOptions, 'client' | 'random'> & Partial<LeaderElectionOptions>,
  signal: AbortSignal,
): Promise<void> {
  const lead = async (term: Leadership) => {
    const office: Office = { who, epoch: term.epoch, fromMs: clock.monotonicMs(), toMs: Number.POSITIVE_INFINITY };
    offices.push(office);
    await aborted(term.signal);
    office.toMs = clock.monotonicMs();
  };
  return runAsLeader({ lock: LOCK, identity: who, ...TIMES, clock, log: silentLogger, ...options }, lead, signal);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** A clock that runs at another speed. */
function skewed(clock: VirtualClock, rate: number): Clock {
  return {
    nowMs: () => clock.nowMs() * rate,
    monotonicMs: () => clock.monotonicMs() * rate,
    bootMs: () => Math.floor(clock.bootMs() * rate),
    sleep: (ms, signal) => clock.sleep(ms / rate, signal),
  };
}

/**
 * A client over a bad network: each call is late, its effect may come after its sender gave up, and its answer may be
 * lost. `isCut` cuts both ways. `connection` changes when all connections break: what was under way is lost then.
 */
function lossy(
  inner: KubeClient,
  clock: VirtualClock,
  random: () => number,
  isCut: () => boolean,
  connection: () => number,
): KubeClient {
  const lost = () => new KubeError({ code: 'UNAVAILABLE', request: 'test', text: 'lost' });
  const someTime = () => clock.sleep(random() < 0.1 ? random() * 20_000 : random() * 500);
  const over = async <T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    const answer = (async () => {
      if (isCut()) throw lost();
      const by = connection();
      await someTime();
      if (by !== connection()) throw lost();
      const result = await call();
      await someTime();
      if (isCut() || random() < 0.1) throw lost();
      return result;
    })();
    answer.catch(() => {});
    const givenUp = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    return await Promise.race([answer, givenUp]);
  };
  return {
    ...inner,
    get: (type, ref, signal) => over(() => inner.get(type, ref), signal),
    create: (type, object, signal) => over(() => inner.create(type, object), signal),
    update: (type, object, signal) => over(() => inner.update(type, object), signal),
  };
}

function overlaps(offices: readonly Office[]): readonly string[] {
  const sorted = offices.toSorted((a, b) => a.fromMs - b.fromMs);
  return sorted.flatMap((office, index) => {
    const next = sorted[index + 1];
    if (next === undefined || next.fromMs >= office.toMs) return [];
    return [`${office.who}#${office.epoch} until ${office.toMs}, ${next.who}#${next.epoch} from ${next.fromMs}`];
  });
}

function isHeld(api: InProcessApi): boolean {
  return /"?holderIdentity\\?":\\?"[^"\\]/.test(
    JSON.stringify([api.objects('configmaps'), api.objects('endpoints'), api.objects('leases', 'coordination.k8s.io')]),
  );
}

type Trouble = { readonly seed: number; readonly rates: readonly number[]; readonly kind: LockRef['kind'] };

/** Twenty virtual minutes of trouble, then five of peace. */
async function simulate({ seed, rates, kind }: Trouble): Promise<{ offices: Office[]; api: InProcessApi }> {
  const clock = new VirtualClock();
  const random = seededRandom(seed);
  const api = startInProcessApi({ clock, random });
  const offices: Office[] = [];
  const stop = new AbortController();
  const cutUntilMs = rates.map(() => 0);
  let isPeace = false;
  let restores = 0;
  const start = (rate: number, index: number, signal: AbortSignal) => {
    const isCut = () => !isPeace && clock.monotonicMs() < (cutUntilMs[index] ?? 0);
    const calm = api.client({ userAgent: `c${index}` });
    const client = lossy(
      calm,
      clock,
      () => (isPeace ? 0.5 : random()),
      isCut,
      () => restores,
    );
    const options = { client, random, clock: skewed(clock, rate), lock: { ...LOCK, kind } };
    return runCandidate(`c${index}`, clock, offices, options, signal);
  };
  const running = rates.map((rate, index) => start(rate, index, stop.signal));
  // One comes and goes: a release now and then, and a fresh process that has seen nothing.
  const visitor = (async () => {
    while (!isPeace) {
      const leave = new AbortController();
      const visit = start(1, 0, leave.signal);
      await clock.sleep(random() * 120_000);
      leave.abort(new Error('leaves'));
      await visit;
    }
  })();
  let backup: ReturnType<typeof api.api.store.snapshot> | undefined;
  for (let minute = 0; minute < 20; minute++) {
    await clock.advance(random() * 60_000);
    const victim = Math.floor(random() * rates.length);
    if (random() < 0.5) cutUntilMs[victim] = clock.monotonicMs() + random() * 90_000;
    // Of a state in which the lock is held: see runAsLeader for one in which it is free.
    if (random() < 0.3 && isHeld(api)) backup = api.api.store.snapshot();
    if (random() < 0.1 && backup !== undefined) {
      // The server is down for a third of the lease: to restore one takes longer.
      cutUntilMs.fill(clock.monotonicMs() + 10_000);
      api.restore(backup);
      restores += 1;
    }
    await clock.advance(random() * 60_000);
  }
  isPeace = true;
  await clock.run(visitor);
  await clock.advance(300_000);
  for (const office of offices) if (office.toMs === Number.POSITIVE_INFINITY) office.toMs = clock.monotonicMs();
  stop.abort(new Error('over'));
  await clock.run(Promise.all(running));
  return { offices, api };
}

const trouble = fc.record({
  seed: fc.integer(),
  rates: fc.array(fc.double({ min: 0.9, max: 1.1, noNaN: true }), { minLength: 2, maxLength: 4 }),
  kind: fc.constantFrom('configmap' as const, 'lease' as const, 'endpoints' as const),
});

test('runAsLeader: never two lead, in any trouble; in peace one does', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.asyncProperty(trouble, async (one) => {
        const { offices } = await simulate(one);
        t.deepEqual(overlaps(offices), []);
        const last = offices.toSorted((a, b) => a.fromMs - b.fromMs).at(-1);
        t.true(last !== undefined && last.toMs - last.fromMs > 100_000, JSON.stringify(last));
      }),
    { numRuns: 40, endOnFailure: true },
  );
});

async function withCandidates(
  count: number,
  run: (scene: {
    readonly clock: VirtualClock;
    readonly api: InProcessApi;
    readonly offices: Office[];
    readonly stops: readonly AbortController[];
    readonly running: readonly Promise<void>[];
  }) => Promise<void>,
): Promise<void> {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock, random: seededRandom(1) });
  const offices: Office[] = [];
  const stops = Array.from({ length: count }, () => new AbortController());
  const running = stops.map((stop, index) => {
    const client = api.client({ userAgent: `c${index}` });
    return runCandidate(`c${index}`, clock, offices, { client, random: seededRandom(index + 1) }, stop.signal);
  });
  try {
    await run({ clock, api, offices, stops, running });
  } finally {
    for (const stop of stops) stop.abort(new Error('over'));
    await clock.run(Promise.all(running));
  }
}

const active = (offices: readonly Office[]) => offices.filter((one) => one.toMs === Number.POSITIVE_INFINITY);

test('runAsLeader: leads at once on a lock that nobody ever held, and writes what client-go reads', (t) =>
  withCandidates(1, async ({ clock, api, offices }) => {
    await clock.advance(1000);
    t.is(active(offices).length, 1);
    const [lock] = api.objects('configmaps');
    const record = JSON.parse(String(lock?.metadata.annotations?.['control-plane.alpha.kubernetes.io/leader']));
    t.regex(record.holderIdentity, /^c0_[0-9a-f]{8}$/);
    t.like(record, { leaseDurationSeconds: 30, leaderTransitions: 1 });
    t.regex(record.renewTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    await clock.advance(60_000);
    t.is(offices.length, 1);
  }));

test('runAsLeader: hands over within a look when the leader ends', (t) =>
  withCandidates(2, async ({ clock, offices, stops, running }) => {
    await clock.advance(20_000);
    const [first] = active(offices);
    const index = Number(first?.who.slice(1));
    stops[index]?.abort(new Error('over'));
    await clock.run(running[index] ?? Promise.resolve());
    await clock.advance(3000);
    const [second] = active(offices);
    t.not(second?.who, first?.who);
    t.is(second?.epoch, (first?.epoch ?? 0) + 1);
  }));

test('runAsLeader: stands back before the lease ends when it cannot renew, and another waits for the whole lease', (t) =>
  withCandidates(2, async ({ clock, api, offices }) => {
    await clock.advance(20_000);
    const [first] = active(offices);
    const cutMs = clock.monotonicMs();
    const { heal } = api.partition(first?.who);
    await clock.advance(60_000);
    heal();
    const [second] = active(offices);
    t.not(second?.who, first?.who);
    t.true((first?.toMs ?? 0) <= cutMs + 22_500);
    t.true((second?.fromMs ?? 0) - (first?.toMs ?? 0) >= 7500 - 1);
    await clock.advance(60_000);
    t.is(offices.length, 2);
  }));

test('runAsLeader: goes on leading when an answer is lost after its effect, and through a short outage', (t) =>
  withCandidates(2, async ({ clock, api, offices }) => {
    await clock.advance(5000);
    api.api.faults.add({ verbs: ['update'], action: { kind: 'drop-after' }, times: 2 });
    await clock.advance(60_000);
    const { heal } = api.partition();
    await clock.advance(9000);
    heal();
    await clock.advance(60_000);
    t.is(offices.length, 1);
  }));

test('runAsLeader: keeps what else is in the lock, and gives way when somebody else is written into it', (t) =>
  withCandidates(1, async ({ clock, api, offices }) => {
    const client = api.client();
    await clock.advance(1000);
    const ref = { namespace: 'kube-system', name: 'lock' };
    const body = { data: { note: 'mine' }, metadata: { labels: { a: 'b' } } };
    await clock.run(client.patch(CONFIG_MAPS, ref, { kind: 'merge', body }));
    await clock.advance(30_000);
    t.is(active(offices).length, 1);
    t.like(await clock.run(client.get(CONFIG_MAPS, ref)), body);
    const record = JSON.stringify({ holderIdentity: 'x', leaseDurationSeconds: 30, leaderTransitions: 7 });
    const annotations = { 'control-plane.alpha.kubernetes.io/leader': record };
    await clock.run(client.patch(CONFIG_MAPS, ref, { kind: 'merge', body: { metadata: { annotations } } }));
    await clock.advance(15_000);
    t.is(active(offices).length, 0);
    await clock.advance(40_000);
    t.is(active(offices)[0]?.epoch, 8);
  }));

test('runAsLeader: asks for nothing that the published role does not grant, and holds a Lease where told to', async (t) => {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock, random: seededRandom(1) });
  const inner = api.client();
  const refuse = () => Promise.reject(new Error('no such right'));
  const client: KubeClient = {
    get: inner.get,
    create: inner.create,
    update: inner.update,
    patch: refuse,
    delete: refuse,
    listPage: refuse,
    watch: () => {
      throw new Error('no such right');
    },
  };
  const stop = new AbortController();
  const offices: Office[] = [];
  const lock = { ...LOCK, kind: 'lease' } as const;
  const running = runCandidate('a', clock, offices, { client, random: seededRandom(3), lock }, stop.signal);
  await clock.advance(30_000);
  t.is(active(offices).length, 1);
  const held = await clock.run(inner.get(LEASES, lock));
  t.like(held, { spec: { leaseDurationSeconds: 30, leaseTransitions: 1 } });
  t.regex(JSON.stringify(held), /"renewTime":"[^"]*\.\d{6}Z"/);
  stop.abort(new Error('over'));
  await clock.run(running);
  t.like(await clock.run(inner.get(LEASES, lock)), { spec: { holderIdentity: '', leaseTransitions: 1 } });
});

test('runAsLeader: notes are stored with the record, by the holder only, and the next leader reads them', async (t) => {
  for (const kind of ['configmap', 'lease', 'endpoints'] as const) {
    const clock = new VirtualClock();
    const api = startInProcessApi({ clock, random: seededRandom(1), latencyMs: 4 });
    const lock = { ...LOCK, kind };
    const terms: Leadership[] = [];
    const candidate = (who: string, signal: AbortSignal): Promise<void> => {
      const client = api.client({ userAgent: who });
      const options = { client, lock, identity: who, ...TIMES, clock, log: silentLogger, random: seededRandom(3) };
      return runAsLeader(
        options,
        async (term) => {
          terms.push(term);
          await aborted(term.signal);
        },
        signal,
      );
    };
    const stop = new AbortController();
    const running = candidate('first', stop.signal);
    await clock.advance(3_000);
    const [first] = terms;
    t.is(first?.notes?.read('note'), undefined);
    await clock.run(Promise.all([first?.notes?.write('note', '1'), first?.notes?.write('other', 'a')]));
    // A write that is refused once, and one whose answer is lost, are made again.
    for (const action of [{ kind: 'status', code: 409, reason: 'Conflict' }, { kind: 'drop-after' }] as const) {
      api.api.faults.add({ verbs: ['update'], action, times: 1 });
      await clock.run(first?.notes?.write('note', action.kind) ?? Promise.resolve());
    }
    const other = new AbortController();
    const following = candidate('second', other.signal);
    await clock.advance(30_000);
    t.is(terms.length, 1);
    const { heal } = api.partition('first');
    const late = first?.notes?.write('note', 'late').catch((error: unknown) => String(error));
    await clock.advance(60_000);
    t.regex(String(await late), /the term is over/);
    await t.throwsAsync(first?.notes?.write('note', 'later') ?? Promise.resolve(), { message: /the term is over/ });
    t.is(terms[1]?.notes?.read('note'), 'drop-after', kind);
    t.is(terms[1]?.notes?.read('other'), 'a');
    heal();
    stop.abort();
    other.abort();
    await clock.run(Promise.all([running, following]));
  }
});

test('runAsLeader: releases the lock and passes on what the work throws; refuses times without room', async (t) => {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock, random: seededRandom(1) });
  const options = {
    client: api.client(),
    lock: LOCK,
    identity: 'a',
    clock,
    log: silentLogger,
    random: seededRandom(1),
  };
  const signal = new AbortController().signal;
  const failing = runAsLeader({ ...options, ...TIMES }, () => Promise.reject(new Error('broken')), signal);
  failing.catch(() => {});
  await t.throwsAsync(clock.run(failing), { message: 'broken' });
  t.regex(JSON.stringify(api.objects('configmaps')), /holderIdentity\\":\\"\\"/);
  const tight = runAsLeader({ ...options, leaseMs: 10_000, renewMs: 8000, retryMs: 2000 }, async () => {}, signal);
  await t.throwsAsync(tight, { instanceOf: RangeError, message: /at most 0.75/ });
});

test('runAsLeader: reports what the API server refuses of the lock, until it refuses nothing', async (t) => {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock });
  const inner = api.client({ userAgent: 'a' });
  let isRefused = true;
  let isAway = false;
  const client: KubeClient = {
    ...inner,
    get: async (...query) => {
      if (isAway) throw new KubeError({ code: 'UNAVAILABLE', request: 'GET lock', text: 'away' });
      if (isRefused) throw new KubeError({ code: 'FORBIDDEN', request: 'GET lock', text: 'no right' });
      return await inner.get(...query);
    },
  };
  const reports: (string | undefined)[] = [];
  const end = new AbortController();
  const reportRefusal = (refusal: string | undefined): void => void reports.push(refusal);
  const running = runCandidate('a', clock, [], { client, random: seededRandom(1), reportRefusal }, end.signal);
  await clock.advance(5_000);
  t.regex(reports.at(-1) ?? '', /FORBIDDEN: no right/);
  isRefused = false;
  await clock.advance(5_000);
  t.is(reports.at(-1), undefined);
  // An API server that is away refuses nothing: all replicas would be out of service at once.
  isAway = true;
  await clock.advance(60_000);
  t.is(reports.at(-1), undefined);
  end.abort();
  await clock.run(running);
});
