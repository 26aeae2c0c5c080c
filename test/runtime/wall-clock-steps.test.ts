import test from 'ava';
import { createRotatingSource } from '../../cloud/tencent/credentials/rotating.ts';
import { CircuitBreakers } from '../../ipamd/calls/circuit-breakers.ts';
import { AddressConflicts } from '../../ipamd/guests/static/address-conflicts.ts';
import { runAsLeader } from '../../kube/leader-election.ts';
import { VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import { TokenBucket } from '../../kube/token-bucket.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import { silentLogger } from '../../runtime/log.ts';
import { StampAges } from '../../runtime/stamp-ages.ts';
import { followCluster } from '../../scheduler/follow-cluster.ts';
import { SchedulerIndex } from '../../scheduler/index/scheduler-index.ts';
import { startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { claimOf } from '../scheduler/scheduler-scene.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const HOUR_MS = 3_600_000;
const STEPS = [0, HOUR_MS, -HOUR_MS, 24 * HOUR_MS, -24 * HOUR_MS];

/** Plays a scene, in which `step` sets the wall clock; what it returns must be the same whatever the step. */
type Scene = (clock: VirtualClock, step: () => void) => Promise<unknown>;

const same = test.macro(async (t, scene: Scene) => {
  const play = async (stepMs: number): Promise<unknown> => {
    const clock = new VirtualClock();
    return await scene(clock, () => clock.stepWall(stepMs));
  };
  const calm = await play(0);
  t.not(JSON.stringify(calm), '[]');
  for (const stepMs of STEPS.slice(1)) t.deepEqual(await play(stepMs), calm, `a step of ${stepMs / HOUR_MS} h`);
});

test('a revoked key is replaced by the next call', same, async (clock, step) => {
  let fetches = 0;
  const end = clock.nowMs() + 2 * HOUR_MS;
  const source = createRotatingSource(clock, async () => {
    fetches += 1;
    return { credential: { secretId: `id-${fetches}`, secretKey: 'k' }, expiresAtMs: end };
  });
  const before = await source.get();
  step();
  await clock.advance(2_000);
  source.invalidate();
  return [before.secretId, (await source.get()).secretId, fetches];
});

test('a temporary key is renewed after the same span', same, async (clock, step) => {
  let fetches = 0;
  const source = createRotatingSource(clock, async () => {
    fetches += 1;
    return { credential: { secretId: `id-${fetches}`, secretKey: 'k' }, expiresAtMs: clock.nowMs() + HOUR_MS };
  });
  const seen: string[] = [(await source.get()).secretId];
  step();
  for (let minute = 1; minute <= 60; minute++) {
    await clock.advance(60_000);
    await source.get();
    const { secretId } = await source.get();
    if (seen.at(-1) !== secretId) seen.push(`${minute} min`, secretId);
  }
  return seen;
});

test('a key without an end is read again after the same span', same, async (clock, step) => {
  let fetches = 0;
  const source = createRotatingSource(clock, async () => {
    fetches += 1;
    return { credential: { secretId: `id-${fetches}`, secretKey: 'k' } };
  });
  await source.get();
  step();
  for (let second = 0; second < 60; second++) {
    await clock.advance(1_000);
    await source.get();
  }
  return fetches;
});

test('createRotatingSource: a clock that is ahead does not fetch a key for each call', async (t) => {
  const clock = new VirtualClock();
  let fetches = 0;
  const source = createRotatingSource(clock, async () => {
    fetches += 1;
    return { credential: { secretId: 'id', secretKey: 'k' }, expiresAtMs: clock.nowMs() - HOUR_MS };
  });
  for (let second = 0; second < 600; second++) {
    await source.get();
    await clock.advance(1_000);
  }
  t.true(fetches >= 10 && fetches <= 21, `${fetches} fetches in ten minutes`);
});

test('a breaker closes after the same span', same, async (clock, step) => {
  const book = new CircuitBreakers(clock);
  book.trip('vpc-enis', 60_000, 'too many');
  step();
  await clock.advance(45_000);
  return [book.refusalOf('vpc-enis', 'a')?.afterMs, book.openKeys()];
});

test('an address conflict ends after the same span', same, async (clock, step) => {
  const book = new AddressConflicts(
    clock,
    () => 0.5,
    async () => undefined,
  );
  book.add('d/a', ['10.1.0.1'], 'ResourceInUse');
  step();
  await clock.advance(10_000);
  return book.of('d/a')?.waitMs;
});

test('a rate limit gives the same tokens', same, async (clock, step) => {
  const bucket = new TokenBucket(clock, 10, 5);
  let taken = 0;
  const taking = Array.from({ length: 100 }, async () => {
    await bucket.take();
    taken += 1;
  });
  await clock.advance(1_000);
  step();
  await clock.advance(2_000);
  const then = taken;
  await clock.run(Promise.all(taking));
  return [then, clock.monotonicMs()];
});

test('a queue gives a failed key again after the same span', same, async (clock, step) => {
  const queue = new WorkQueue({ clock, random: () => 0.5 });
  queue.addAfter('a', 30_000);
  step();
  await clock.advance(29_000);
  const early = queue.size;
  await clock.advance(2_000);
  const late = queue.size;
  queue.close();
  return [early, late];
});

test('a lock changes hands at the same time', same, async (clock, step) => {
  const api = startInProcessApi({ clock, random: seededRandom(1) });
  const stops = [new AbortController(), new AbortController()];
  const offices: string[] = [];
  const running = stops.map((stop, index) => {
    const options = {
      lock: { kind: 'lease', namespace: 'kube-system', name: 'lock' } as const,
      ...{ identity: `c${index}`, leaseMs: 30_000, renewMs: 10_000, retryMs: 2_000, clock, log: silentLogger },
      ...{ client: api.client({ userAgent: `c${index}` }), random: seededRandom(index + 1) },
    };
    const lead = (term: { readonly epoch: number; readonly signal: AbortSignal }) => {
      offices.push(`c${index} #${term.epoch} at ${Math.round(clock.monotonicMs())}`);
      return new Promise<void>((resolve) => term.signal.addEventListener('abort', () => resolve(), { once: true }));
    };
    return runAsLeader(options, lead, stop.signal);
  });
  await clock.advance(20_000);
  step();
  await clock.advance(120_000);
  const first = Number(offices[0]?.[1]);
  stops[first]?.abort(new Error('over'));
  await clock.advance(60_000);
  for (const stop of stops) stop.abort(new Error('over'));
  await clock.run(Promise.all(running));
  return offices;
});

test('a reservation in a claim that changes ends after the same span', same, async (clock, step) => {
  const api = startInProcessApi({ clock, random: seededRandom(1) });
  const client = api.client({ userAgent: 'scheduler' });
  await clock.run(installKinds(client));
  const index = new SchedulerIndex(120_000);
  const deps = { client, clock, log: silentLogger, random: seededRandom(2), namespace: 'kube-system' };
  const { vpcipclaims } = followCluster(deps, index, new ChangeSignal(clock));
  const reservedAt = new Date(clock.nowMs()).toISOString();
  const claim = claimOf({ name: 'web-0', reservedAt, spec: { nodeName: 'n1' } });
  const created = await clock.run(client.create(VPC_IP_CLAIMS, claim));
  const stop = new AbortController();
  const following = vpcipclaims.start(stop.signal);
  await clock.advance(30_000);
  const seen: number[] = [index.sizes.reservations];
  step();
  const annotations = { ...created.metadata.annotations, touched: 'yes' };
  await clock.run(client.update(VPC_IP_CLAIMS, { ...created, metadata: { ...created.metadata, annotations } }));
  for (let second = 40; second <= 140; second += 10) {
    await clock.advance(10_000);
    index.expire({ wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() });
    seen.push(index.sizes.reservations);
  }
  stop.abort(new Error('over'));
  await clock.run(following);
  return seen;
});

/** Hours after which something that is kept for 10 h, counted from a stamp of 4 h ago, ends. */
async function endOf(clock: VirtualClock, change: (hour: number) => void): Promise<number> {
  const ages = new StampAges(clock);
  const stamp = new Date(clock.nowMs() - 4 * HOUR_MS).toISOString();
  for (let hour = 0; hour < 200; hour++) {
    if (ages.ageMs('a', stamp) >= 10 * HOUR_MS) return hour;
    await clock.advance(HOUR_MS);
    change(hour);
  }
  return Number.POSITIVE_INFINITY;
}

const ends = test.macro(async (t, steps: Readonly<Record<number, number>>, wanted: number) => {
  const clock = new VirtualClock();
  t.is(await endOf(clock, (hour) => clock.stepWall((steps[hour] ?? 0) * HOUR_MS)), wanted);
});
test('StampAges: ends in time without a step', ends, {}, 6);
test('StampAges: nothing ends early after a step forward', ends, { 1: 5 }, 6);
test('StampAges: a step back ends late by its length', ends, { 1: -1 }, 7);
test('StampAges: a step back before the stamp does not count', ends, { 1: -1_000 }, 6);
test('StampAges: a step back that is corrected does no harm', ends, { 1: -3, 3: 3 }, 6);

test('StampAges: a first reading by a clock that is ahead counts no longer once that is corrected', async (t) => {
  const clock = new VirtualClock();
  const ages = new StampAges(clock);
  const stamp = new Date(clock.nowMs()).toISOString();
  clock.stepWall(9 * HOUR_MS);
  t.is(ages.ageMs('a', stamp), 9 * HOUR_MS);
  clock.stepWall(-9 * HOUR_MS);
  await clock.advance(HOUR_MS);
  t.is(ages.ageMs('a', stamp), HOUR_MS);
});

test('StampAges: a stamp of the future has the age 0, another stamp begins again, none is forgotten', async (t) => {
  const clock = new VirtualClock();
  const ages = new StampAges(clock);
  const future = new Date(clock.nowMs() + HOUR_MS).toISOString();
  t.is(ages.ageMs('a', future), 0);
  await clock.advance(60_000);
  t.is(ages.ageMs('a', future), 60_000);
  t.is(ages.ageMs('a', new Date(clock.nowMs() - 5).toISOString()), 5);
  t.is(ages.ageMs('a', undefined), 0);
  t.is(ages.ageMs('a', 'soon'), 0);
});
