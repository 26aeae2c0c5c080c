import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import type { CallContext } from '../../cloud/cloud.ts';
import { CloudError } from '../../cloud/cloud-error.ts';
import { type OrphanKind, type OrphanOutcome, OrphanSweep } from '../../cloud/orphan-sweep.ts';
import { silentLogger } from '../../runtime/log.ts';
import { assertLaw } from '../support/law.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const MINUTE_MS = 60_000;
const GRACE_MS = 10 * MINUTE_MS;
const OWN = 'ours';

type Thing = { readonly id: string; readonly tag: string; readonly createdAtMs: number };

function failure(retry: CloudError['retry']): CloudError {
  return new CloudError({ code: retry, action: 'DeleteThing', text: retry, retry, afterMs: 0 });
}

/** Things of a cloud, who has them, and what a sweep does to them. */
class ThingWorld {
  readonly clock = new VirtualClock();
  readonly things = new Map<string, Thing>();
  readonly owned = new Set<string>();
  /** What the API server has beyond the caches. */
  readonly ownedUnseen = new Set<string>();
  readonly removed: string[] = [];
  readonly reports: [string, OrphanOutcome['kind']][] = [];
  tooMany = 0;
  isSynced = true;
  limit = 3;
  listing: 'whole' | 'failing' | 'inconsistent' = 'whole';
  /** Answers of the next removals. */
  answers: (CloudError | OrphanOutcome)[] = [];
  /** What the cloud does not let go. */
  readonly kept = new Set<string>();
  onLook: (id: string) => unknown = () => {};
  onRemove: (thing: Thing) => void = () => {};
  readonly #end = new AbortController();
  readonly #context: CallContext = { priority: 'gc', owner: 'test', signal: this.#end.signal };

  add(id: string, { tag = OWN, ageMs = 60 * MINUTE_MS, owned = false } = {}): void {
    this.things.set(id, { id, tag, createdAtMs: ageMs === 0 ? 0 : this.clock.nowMs() - ageMs });
    if (owned) this.owned.add(id);
  }

  readonly kind: OrphanKind<Thing> = {
    skipMessage: 'things were not looked for',
    idOf: ({ id }) => id,
    createdAtMs: (thing) => thing.createdAtMs,
    list: async () => {
      if (this.listing === 'failing') throw failure('backoff');
      return this.listing === 'inconsistent' ? 'SweepInconsistent' : [...this.things.values()];
    },
    isOurs: ({ tag }) => tag === OWN,
    ownerCheck: () => {
      const owned = new Set(this.owned);
      return this.isSynced ? ({ id }) => owned.has(id) : undefined;
    },
    limit: () => this.limit,
    whyKept: ({ id }) => (this.kept.has(id) ? 'it is protected' : undefined),
    lookAgain: async ({ id }) => {
      this.onLook(id);
      return this.ownedUnseen.has(id) ? undefined : this.things.get(id);
    },
    remove: async (thing) => {
      this.onRemove(thing);
      const answer = this.answers.shift() ?? { kind: 'removed' };
      if (answer instanceof CloudError) throw answer;
      if (answer.kind !== 'removed') return answer;
      this.things.delete(thing.id);
      this.removed.push(thing.id);
      return answer;
    },
    report: ({ id }, { kind: outcome }) => this.reports.push([id, outcome]),
    reportTooMany: ({ length }) => {
      this.tooMany = length;
    },
  };

  open(change: Partial<OrphanKind<Thing>> = {}, graceMs = GRACE_MS): OrphanSweep<Thing> {
    const kind = { ...this.kind, ...change };
    return new OrphanSweep(kind, { clock: this.clock, log: silentLogger }, graceMs);
  }

  /** Sweeps, and lets `GRACE_MS` pass. */
  async sweep(sweep: OrphanSweep<Thing>) {
    const swept = await sweep.sweep(this.#context);
    await this.clock.advance(GRACE_MS);
    return swept;
  }

  end(): void {
    this.#end.abort(new Error('the term is over'));
  }
}

test('OrphanSweep: removes what had no owner for the grace and in two sweeps on end', async (t) => {
  const world = new ThingWorld();
  world.add('orphan');
  world.add('owned', { owned: true });
  const sweep = world.open();
  t.like(await world.sweep(sweep), { kind: 'done', own: { length: 2 }, orphans: { length: 1 }, outcomes: { size: 0 } });
  world.owned.add('orphan');
  await world.sweep(sweep);
  world.owned.delete('orphan');
  await world.sweep(sweep);
  t.deepEqual(world.removed, [], 'a sweep found an owner: it counts from the beginning');
  await world.sweep(sweep);
  t.deepEqual(world.removed, ['orphan']);
  t.deepEqual(world.reports, [['orphan', 'removed']]);
});

test('OrphanSweep: waits for the grace, however many sweeps there are', async (t) => {
  const world = new ThingWorld();
  world.add('orphan');
  const sweep = world.open();
  const context: CallContext = { priority: 'gc', owner: 'test', signal: new AbortController().signal };
  for (let minute = 0; minute < 10; minute++) {
    await sweep.sweep(context);
    await world.clock.advance(MINUTE_MS);
  }
  t.deepEqual(world.removed, []);
  await sweep.sweep(context);
  t.deepEqual(world.removed, ['orphan']);
});

test('OrphanSweep: a tag of others, and an age that is small or unknown, are of no orphan', async (t) => {
  const world = new ThingWorld();
  world.add('foreign', { tag: 'theirs' });
  world.add('young', { ageMs: 1 });
  world.add('ageless', { ageMs: 0 });
  const sweep = world.open();
  t.like(await world.sweep(sweep), { own: { length: 2 }, orphans: [] });
  await world.sweep(sweep);
  t.deepEqual(world.removed, [], '20 minutes old, but an orphan only since it was 15');
  for (let nth = 0; nth < 3; nth++) await world.sweep(sweep);
  t.deepEqual(world.removed, ['young']);
});

test('OrphanSweep: the last check hears of an owner in a cache, at the API server, and of a tag that was taken off', async (t) => {
  for (const change of [
    (world: ThingWorld) => world.owned.add('one'),
    (world: ThingWorld) => world.ownedUnseen.add('one'),
    (world: ThingWorld) => world.add('one', { tag: 'theirs' }),
    (world: ThingWorld) => world.kept.add('one'),
    (world: ThingWorld) => {
      world.isSynced = false;
    },
  ]) {
    const world = new ThingWorld();
    world.add('first');
    world.add('one');
    world.onLook = (id) => id === 'one' && change(world);
    const sweep = world.open();
    await world.sweep(sweep);
    await world.sweep(sweep);
    t.deepEqual(world.removed, ['first']);
    t.deepEqual(world.reports, [
      ['first', 'removed'],
      ['one', 'spared'],
    ]);
  }
});

test('OrphanSweep: an owner that comes during the last look is heard of, and a look that fails proves nothing', async (t) => {
  const world = new ThingWorld();
  world.add('late');
  world.add('unread');
  let isAnswering = false;
  world.onLook = (id) => {
    if (id === 'late') world.owned.add(id);
    else if (!isAnswering) throw new Error('the API server does not answer');
  };
  const sweep = world.open();
  await world.sweep(sweep);
  t.like(await world.sweep(sweep), { kind: 'done' });
  t.deepEqual(world.removed, []);
  t.deepEqual(world.reports, [
    ['late', 'spared'],
    ['unread', 'failed'],
  ]);
  isAnswering = true;
  await world.sweep(sweep);
  t.deepEqual(world.removed, ['unread'], 'the grace does not begin again');
});

test('OrphanSweep: what is kept uses up no limit, what may have to stay comes last, and the limit holds for what fails', async (t) => {
  const world = new ThingWorld();
  for (const id of ['kept', 'stuck', 'a', 'b', 'c']) world.add(id);
  world.limit = 2;
  world.kept.add('kept');
  const sweep = world.open({ isLast: ({ id }) => id === 'stuck' });
  await world.sweep(sweep);
  world.answers = [failure('never')];
  await world.sweep(sweep);
  t.deepEqual(world.reports, [
    ['kept', 'kept'],
    ['a', 'failed'],
    ['b', 'removed'],
    ['c', 'waiting'],
    ['stuck', 'waiting'],
  ]);
  world.answers = [failure('gone'), { kind: 'kept', why: 'somebody uses it' }];
  await world.sweep(sweep);
  t.deepEqual(world.reports.slice(5), [
    ['kept', 'kept'],
    ['c', 'removed'],
    ['stuck', 'kept'],
    ['a', 'removed'],
  ]);
});

const TRIES_IN_VAIN = {
  'a look that fails': {
    lookAgain: () => {
      throw new Error('the API server does not answer');
    },
  },
  'a removal that the cloud refuses': {
    remove: () => {
      throw failure('never');
    },
  },
  'a removal that does not come about': { remove: async () => ({ kind: 'later', why: 'its task runs' }) },
} as const satisfies Readonly<Record<string, Partial<OrphanKind<Thing>>>>;

for (const [what, inVain] of Object.entries(TRIES_IN_VAIN)) {
  test(`OrphanSweep: ${what}, forever, keeps the limit from no other orphan`, async (t) => {
    const world = new ThingWorld();
    const { lookAgain, remove } = { ...world.kind, ...inVain };
    const isStuck = ({ id }: Thing): boolean => id.startsWith('stuck');
    const sweep = world.open({
      isLast: ({ id }) => id === 'last',
      lookAgain: async (one, context) => await (isStuck(one) ? lookAgain : world.kind.lookAgain)(one, context),
      remove: async (one, context) => await (isStuck(one) ? remove : world.kind.remove)(one, context),
    });
    for (const id of ['stuck-0', 'stuck-1', 'stuck-2', 'last', 'a', 'b', 'c']) world.add(id);
    world.limit = 3;
    for (let nth = 0; nth < 4; nth++) await world.sweep(sweep);
    t.deepEqual(world.removed.toSorted(), ['a', 'b', 'c', 'last']);
    const before = world.reports.length;
    await world.sweep(sweep);
    t.deepEqual(
      world.reports
        .slice(before)
        .map(([id]) => id)
        .toSorted(),
      ['stuck-0', 'stuck-1', 'stuck-2'],
      'each is tried again',
    );
  });
}

test('OrphanSweep: one that was tried in vain has its turn though new orphans use up every limit', async (t) => {
  const world = new ThingWorld();
  world.limit = 1;
  let isAway = true;
  const sweep = world.open({
    lookAgain: async (one, context) => {
      if (one.id === 'old' && isAway) throw new Error('the API server does not answer');
      return await world.kind.lookAgain(one, context);
    },
  });
  world.add('old');
  for (let nth = 0; nth < 100; nth++) {
    world.add(`new-${nth}`);
    await world.sweep(sweep);
    isAway = nth < 20;
  }
  t.true(world.removed.includes('old'));
});

test('OrphanSweep: so many orphans that owners must have been lost are reported, and none is removed', async (t) => {
  const world = new ThingWorld();
  for (let nth = 0; nth < 11; nth++) world.add(`orphan-${nth}`);
  for (let nth = 0; nth < 11; nth++) world.add(`owned-${nth}`, { owned: true });
  const sweep = world.open();
  t.like(await world.sweep(sweep), { areTooMany: false, orphans: { length: 11 } });
  world.things.delete('owned-10');
  for (let nth = 0; nth < 3; nth++) t.like(await world.sweep(sweep), { areTooMany: true, outcomes: { size: 0 } });
  t.is(world.tooMany, 11);
  world.add('owned-10', { owned: true });
  t.like(await world.sweep(sweep), { areTooMany: false, outcomes: { size: 0 } }, 'it counts from the beginning');
  t.like(await world.sweep(sweep), { outcomes: { size: 11 } });
  t.is(world.removed.length, world.limit);
});

test('OrphanSweep: of a kind without such a report any number is removed', async (t) => {
  const world = new ThingWorld();
  for (let nth = 0; nth < 11; nth++) world.add(`orphan-${nth}`);
  world.limit = 11;
  const sweep = world.open({ reportTooMany: undefined });
  for (let nth = 0; nth < 2; nth++) t.like(await world.sweep(sweep), { areTooMany: false });
  t.is(world.removed.length, 11);
});

test('OrphanSweep: a list that fails or changed meanwhile, and owners that are unknown, prove nothing', async (t) => {
  const world = new ThingWorld();
  world.add('orphan');
  const sweep = world.open();
  await world.sweep(sweep);
  world.listing = 'failing';
  t.deepEqual(await world.sweep(sweep), { kind: 'skipped', why: 'SweepFailed' });
  world.listing = 'inconsistent';
  t.deepEqual(await world.sweep(sweep), { kind: 'skipped', why: 'SweepInconsistent' });
  world.listing = 'whole';
  world.isSynced = false;
  t.deepEqual(await world.sweep(sweep), { kind: 'skipped', why: 'NotSynced' });
  world.isSynced = true;
  t.like(await world.sweep(sweep), { kind: 'done' });
  t.deepEqual(world.removed, ['orphan']);
  world.listing = 'failing';
  world.end();
  await t.throwsAsync(world.sweep(sweep), { message: 'the term is over' });
});

const arbThing = fc.record({
  tag: fc.constantFrom(OWN, OWN, OWN, 'theirs'),
  ageMs: fc.constantFrom(0, 1, 8 * MINUTE_MS, 60 * MINUTE_MS, 60 * MINUTE_MS),
});
/** What happens to a thing: between two sweeps, or while one looks or removes. */
const arbChange = fc.record({
  nth: fc.nat({ max: 19 }),
  what: fc.constantFrom('own', 'lose', 'own unseen', 'retag'),
  when: fc.constantFrom('between', 'look', 'remove'),
});
const arbSweep = fc.record({
  listing: fc.constantFrom('whole', 'whole', 'whole', 'failing', 'inconsistent'),
  isSynced: fc.constantFrom(true, true, true, false),
  changes: fc.array(arbChange, { maxLength: 4 }),
  answers: fc.array(fc.constantFrom('never', 'backoff', 'resolve', undefined), { maxLength: 3 }),
});
const arbHistory = fc.record({
  graceMs: fc.constantFrom(0, GRACE_MS, 2 * GRACE_MS),
  things: fc.array(arbThing, { minLength: 1, maxLength: 20 }),
  limit: fc.integer({ min: 1, max: 4 }),
  sweeps: fc.array(arbSweep, { maxLength: 8 }),
});

test('OrphanSweep: removes nothing of others or with an owner, so many in a sweep, and in the end every orphan', async (t) => {
  await assertLaw(t, (t) => fc.asyncProperty(arbHistory, async (history) => await checkHistory(t, history)), {
    numRuns: 400,
  });
});

type History = typeof arbHistory extends fc.Arbitrary<infer Value> ? Value : never;

async function checkHistory(t: ExecutionContext, { graceMs, things, limit, sweeps }: History): Promise<void> {
  const world = new ThingWorld();
  for (const [nth, thing] of things.entries()) world.add(`thing-${nth}`, thing);
  world.limit = limit;
  const sweep = world.open({}, graceMs);
  /** In how many sweeps on end each was listed without an owner, at most. */
  const unowned = new Map<string, number>();
  const isOwned = (id: string): boolean => world.owned.has(id) || world.ownedUnseen.has(id);
  const apply = ({ nth, what }: { readonly nth: number; readonly what: string }): void => {
    const id = `thing-${nth % things.length}`;
    const thing = world.things.get(id);
    if (thing === undefined) return;
    if (what === 'own') world.owned.add(id);
    else if (what === 'own unseen') world.ownedUnseen.add(id);
    else if (what === 'retag') world.things.set(id, { ...thing, tag: 'theirs' });
    else for (const owners of [world.owned, world.ownedUnseen]) owners.delete(id);
  };
  const run = async ({ listing, isSynced, changes, answers }: History['sweeps'][number]): Promise<void> => {
    for (const change of changes) if (change.when === 'between') apply(change);
    Object.assign(world, { listing, isSynced, answers: answers.map((one) => one && failure(one)) });
    if (listing === 'whole' && isSynced)
      for (const id of world.things.keys()) unowned.set(id, world.owned.has(id) ? 0 : (unowned.get(id) ?? 0) + 1);
    let tried = 0;
    world.onLook = () => {
      for (const change of changes) if (change.when === 'look') apply(change);
    };
    world.onRemove = ({ id, tag, createdAtMs }) => {
      tried += 1;
      t.is(world.things.get(id)?.tag, OWN);
      t.is(tag, OWN);
      t.false(isOwned(id), `${id} has an owner`);
      t.true(createdAtMs > 0 && world.clock.nowMs() - createdAtMs >= 15 * MINUTE_MS);
      t.true((unowned.get(id) ?? 0) >= 2, `${id} had no owner in one sweep alone`);
      for (const change of changes) if (change.when === 'remove') apply(change);
    };
    await world.sweep(sweep);
    t.true(tried <= limit);
  };
  for (const one of sweeps) await run(one);
  const calm = { listing: 'whole', isSynced: true, changes: [], answers: [] } as const;
  for (let nth = 0; nth < 5 + Math.ceil(things.length / limit); nth++) await run({ ...calm, changes: [], answers: [] });
  const left = [...world.things.values()].filter(({ id, tag, createdAtMs }) => {
    return tag === OWN && createdAtMs !== 0 && !isOwned(id);
  });
  const ownCount = [...world.things.values()].filter(({ tag }) => tag === OWN).length;
  const isStopped = world.tooMany > 10 && left.length > ownCount / 2;
  t.deepEqual(isStopped ? [] : left, []);
}
