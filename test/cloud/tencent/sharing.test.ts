import test from 'ava';
import { classifyError } from '../../../cloud/classify-error.ts';
import { IdBatcher } from '../../../cloud/tencent/id-batcher.ts';
import { readPages } from '../../../cloud/tencent/paged.ts';
import { SharedSweep } from '../../../cloud/tencent/shared-sweep.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { attachedEni, contextOf, createdEni, inProcess, SPEC } from '../cloud-fixture.ts';

test('SharedSweep: all who wait share one sweep, and it began after each of them asked', async (t) => {
  const clock = new VirtualClock();
  const shared = new SharedSweep<number>(clock);
  const startedAt: number[] = [];
  const sweep = async (): Promise<number> => {
    startedAt.push(clock.monotonicMs());
    await clock.sleep(1_000);
    return startedAt.at(-1) ?? -1;
  };
  const asked: { readonly atMs: number; readonly sawMs: Promise<number> }[] = [];
  const ask = (): void => {
    asked.push({ atMs: clock.monotonicMs(), sawMs: shared.join('key', contextOf(), sweep) });
  };
  for (let count = 0; count < 30; count++) {
    ask();
    ask();
    await clock.advance(100);
  }
  const saw = await clock.run(Promise.all(asked.map((one) => one.sawMs)));
  t.true(asked.every((one, index) => (saw[index] ?? -1) >= one.atMs));
  t.deepEqual(startedAt, [0, 1_000, 2_000, 3_000]);
});

test('SharedSweep: one who leaves disturbs nobody; when all leave, the sweep is aborted', async (t) => {
  const clock = new VirtualClock();
  const shared = new SharedSweep<string>(clock);
  const controllers = [new AbortController(), new AbortController()];
  let aborted = false;
  const join = (controller: AbortController) =>
    shared.join('key', contextOf({ signal: controller.signal }), async ({ signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      await clock.sleep(1_000, signal);
      return 'seen';
    });
  const [leaver, stayer] = controllers.map(join);
  await clock.advance(10);
  controllers[0]?.abort(new Error('gone'));
  await t.throwsAsync(leaver ?? Promise.resolve(), { message: 'gone' });
  t.false(aborted);
  t.is(await clock.run(stayer ?? Promise.resolve('')), 'seen');
  const alone = new AbortController();
  const last = join(alone);
  await clock.advance(10);
  alone.abort(new Error('gone too'));
  await t.throwsAsync(last, { message: 'gone too' });
  t.true(aborted);
  t.is(await clock.run(join(new AbortController())), 'seen');
});

test('SharedSweep: who comes after everybody left a sweep that had not begun gets one of its own', async (t) => {
  const clock = new VirtualClock();
  const shared = new SharedSweep<string>(clock);
  const sweep = async (): Promise<string> => {
    await clock.sleep(1_000);
    return 'seen';
  };
  const running = shared.join('key', contextOf(), sweep);
  await clock.advance(10);
  const controller = new AbortController();
  const left = shared.join('key', contextOf({ signal: controller.signal }), sweep);
  controller.abort(new Error('left'));
  await t.throwsAsync(left, { message: 'left' });
  const late = shared.join('key', contextOf(), sweep);
  t.deepEqual(await clock.run(Promise.all([running, late])), ['seen', 'seen']);
  t.is(clock.monotonicMs(), 2_000);
});

test('IdBatcher: who comes after everybody left gets an answer all the same', async (t) => {
  const clock = new VirtualClock();
  const batcher = new IdBatcher<string>(
    clock,
    (id) => [id],
    async (ids) => ids,
  );
  const controller = new AbortController();
  const left = batcher.get(['a'], contextOf({ signal: controller.signal }));
  controller.abort(new Error('left'));
  await t.throwsAsync(left, { message: 'left' });
  t.deepEqual(await clock.run(batcher.get(['b'], contextOf())), ['b']);
});

test('IdBatcher: 250 who ask at once cost three requests; a missing id costs the others nothing', async (t) => {
  const clock = new VirtualClock();
  const sizes: number[] = [];
  const batcher = new IdBatcher<{ readonly id: string }>(
    clock,
    (object) => [object.id],
    async (ids) => {
      sizes.push(ids.length);
      return ids.filter((id) => id !== 'missing').map((id) => ({ id }));
    },
  );
  const ids = Array.from({ length: 249 }, (_, index) => `id-${index}`);
  const answers = await clock.run(Promise.all([...ids, 'missing'].map((id) => batcher.get([id], contextOf()))));
  t.deepEqual(sizes, [100, 100, 50]);
  t.deepEqual(
    answers.map(([object]) => object?.id),
    [...ids, undefined],
  );
});

test('IdBatcher: who gathers for a moment does not wait with those who have time, nor call in their turn', async (t) => {
  const clock = new VirtualClock();
  const calls: { readonly owner: string; readonly ids: readonly string[] }[] = [];
  const batcher = new IdBatcher<string>(
    clock,
    (id) => [id],
    async (ids, { owner }) => {
      calls.push({ owner, ids });
      return ids;
    },
    100,
    ({ owner }) => (owner === 'busy' ? 500 : 20),
  );
  const slow = ['a', 'b'].map((id) => batcher.get([id], contextOf({ owner: 'busy' })));
  t.deepEqual(await clock.run(batcher.get(['c'], contextOf({ owner: 'idle' }))), ['c']);
  t.is(clock.monotonicMs(), 20);
  await clock.run(Promise.all(slow));
  t.deepEqual(calls, [
    { owner: 'idle', ids: ['c'] },
    { owner: 'busy', ids: ['a', 'b'] },
  ]);
});

test('describe: finds those that exist also where the API refuses a request for one that does not', async (t) => {
  const { cloud, host, wait } = await inProcess();
  const eniIds = await wait(Promise.all(['a', 'b', 'c'].map((name) => createdEni(cloud, name))));
  const missing = 'eni-99999999';
  host.forget();
  // The faults stand for an API that refuses: the request of four, and the half with the missing one.
  host.faults.add({
    fault: { kind: 'error', code: 'ResourceNotFound' },
    actions: ['DescribeNetworkInterfaces'],
    times: 1,
  });
  const found = await wait(cloud.enis.describe([...eniIds, missing], contextOf()));
  t.deepEqual(found.map((eni) => eni.eniId).sort(), eniIds.toSorted());
  t.is(host.counts()['DescribeNetworkInterfaces'], 3);
});

test("IdBatcher: one who has little time ends its own wait, not the others'", async (t) => {
  const clock = new VirtualClock();
  const batcher = new IdBatcher<string>(
    clock,
    (id) => [id],
    async (ids, { signal }) => {
      await clock.sleep(5_000, signal);
      return ids;
    },
  );
  const hasty = batcher.get(['a'], contextOf({ timeoutMs: 100 })).catch((error: unknown) => String(error));
  const patient = batcher.get(['b'], contextOf());
  t.regex(String(await clock.run(hasty)), /Code=DEADLINE/);
  t.deepEqual(await clock.run(patient), ['b']);
});

test('tasks.settle: is pending when its time runs out first', async (t) => {
  const { cloud, host, wait } = await inProcess({ taskMs: [60_000, 60_000] });
  const spec = { vpcId: SPEC.vpcId, subnetId: 'subnet-large000', name: 'slow' };
  const { task } = await wait(cloud.enis.create(spec, contextOf()));
  const startMs = host.clock.monotonicMs();
  t.deepEqual(await wait(cloud.tasks.settle(task, contextOf({ timeoutMs: 4_500 }))), { kind: 'pending' });
  t.true(host.clock.monotonicMs() - startMs <= 4_600);
  t.deepEqual(await wait(cloud.tasks.settle(task, contextOf({ timeoutMs: 100_000 }))), { kind: 'done' });
});

test('tasks.settle: forty attachments at once are watched by four requests a second', async (t) => {
  const { cloud, host, wait } = await inProcess({ taskMs: [3_000, 3_000] });
  const { state } = host.model;
  const instanceIds = Array.from({ length: 40 }, (_, index) => `ins-${index}`);
  for (const instanceId of instanceIds) state.addInstance({ instanceId, cores: 8, subnetId: 'subnet-large000' });
  const eniIds = await wait(Promise.all(instanceIds.map((id) => attachedEni(cloud, id, id))));
  const counts = host.counts();
  t.is(eniIds.length, 40);
  t.is(counts['AttachNetworkInterface'], 40);
  t.is(counts['DescribeVpcTaskResult'], undefined);
  // Two tasks of three seconds each, one after the other.
  t.true((counts['DescribeNetworkInterfaces'] ?? 0) <= 4 * 7 + 4, String(counts['DescribeNetworkInterfaces']));
});

test('sweep: everybody who waits shares its pages', async (t) => {
  const { cloud, host, wait } = await inProcess({ latencyMs: [100, 100] });
  const sweeps = Array.from({ length: 50 }, () => cloud.enis.sweep({ vpcId: SPEC.vpcId }, contextOf()));
  const seen = await wait(Promise.all(sweeps));
  t.true(seen.every((sweep) => sweep.enis.length === 4));
  t.is(host.counts()['DescribeNetworkInterfaces'], 1);
});

test('readPages: says when the objects changed under it each time, and sees each once', async (t) => {
  const objects = Array.from({ length: 350 }, (_, index) => ({ id: index }));
  const still = await readPages(
    async (offset) => ({ objects: objects.slice(offset, offset + 100), total: objects.length }),
    (object) => String(object.id),
  );
  t.true(still.isConsistent);
  t.is(still.objects.length, 350);
  const moving = await readPages(
    async (offset) => {
      const page = { objects: objects.slice(offset, offset + 100), total: objects.length };
      objects.shift();
      return page;
    },
    (object) => String(object.id),
  );
  t.false(moving.isConsistent);
});

test('IdBatcher: an id that the cloud takes for nonsense fails for who asked for it, and for nobody else', async (t) => {
  const clock = new VirtualClock();
  let calls = 0;
  const batcher = new IdBatcher<string>(
    clock,
    (id) => [id],
    async (ids) => {
      calls += 1;
      if (!ids.includes('nonsense')) return ids;
      throw classifyError({ code: 'InvalidInstanceId.Malformed', action: 'DescribeInstances', text: 'nonsense' });
    },
  );
  const sane = Array.from({ length: 99 }, (_, index) => batcher.get([`ins-${index}`], contextOf()));
  const insane = batcher.get(['ins-own', 'nonsense'], contextOf()).catch((error: unknown) => error);
  t.deepEqual(
    await clock.run(Promise.all(sane)),
    sane.map((_, index) => [`ins-${index}`]),
  );
  t.like(await insane, { code: 'InvalidInstanceId.Malformed' });
  t.true(calls <= 16, `${calls} calls`);
});

test('IdBatcher: what is refused whatever the ids is asked for once', async (t) => {
  const clock = new VirtualClock();
  let calls = 0;
  const batcher = new IdBatcher<string>(
    clock,
    (id) => [id],
    async () => {
      calls += 1;
      throw classifyError({ code: 'UnauthorizedOperation', action: 'DescribeInstances', text: 'no' });
    },
  );
  const asked = Array.from({ length: 50 }, (_, index) =>
    batcher.get([`ins-${index}`], contextOf()).catch((error: unknown) => error),
  );
  for (const error of await clock.run(Promise.all(asked))) t.like(error, { code: 'UnauthorizedOperation' });
  t.is(calls, 1);
});
