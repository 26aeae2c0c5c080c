import test from 'ava';
import fc from 'fast-check';
import { FlightRecorder, type RecordedEntry, type RecorderLimits } from '../../../agent/recorder/flight-recorder.ts';
import { assertLaw } from '../../support/law.ts';

let serial = 0;

function entry(change: Partial<RecordedEntry> = {}): RecordedEntry {
  serial++;
  return {
    kind: 'add',
    containerId: `c${serial}`,
    ifName: 'eth0',
    atMs: serial,
    durationMs: 1,
    steps: [],
    kernel: [],
    ...change,
  };
}

const limits: fc.Arbitrary<RecorderLimits> = fc.record({
  pods: fc.integer({ min: 1, max: 6 }),
  operationsPerPod: fc.integer({ min: 1, max: 5 }),
  operations: fc.integer({ min: 1, max: 12 }),
  operationsOfNode: fc.integer({ min: 1, max: 5 }),
});

test('FlightRecorder: never holds more than its limits, and of each Pod the newest in order', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(limits, fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 80 }), (bounds, pods) => {
        const recorder = new FlightRecorder(bounds);
        const told = new Map<string, RecordedEntry[]>();
        for (const number of pods) {
          const one = entry();
          recorder.add(`p${number}`, one);
          told.set(`p${number}`, [...(told.get(`p${number}`) ?? []), one]);
        }
        const kept = [...recorder.pods()];
        const count = kept.reduce((sum, { entries }) => sum + entries.length, 0);
        t.is(recorder.size, count);
        t.is(recorder.dropped, pods.length - count);
        t.true(count <= bounds.operations && kept.length <= bounds.pods);
        for (const { pod, entries } of kept) {
          t.true(entries.length > 0 && entries.length <= bounds.operationsPerPod);
          t.deepEqual(entries, told.get(pod)?.slice(-entries.length));
        }
        const lastAt = kept.map(({ entries }) => entries.at(-1)?.atMs ?? 0);
        t.deepEqual(
          lastAt,
          lastAt.toSorted((a, b) => b - a),
          'the Pod that something happened to last comes first',
        );
        if (pods.length > 0) t.is(kept[0]?.pod, `p${pods.at(-1)}`);
      }),
    { numRuns: 300 },
  );
});

test('FlightRecorder: is bounded under 20,000 ADDs and DELs of as many Pods', (t) => {
  const recorder = new FlightRecorder();
  for (let pod = 0; pod < 20_000; pod++) {
    recorder.add(`default/p${pod}`, entry());
    recorder.add(`default/p${pod}`, entry({ kind: 'del' }));
    if (pod % 1_000 === 0) t.true(recorder.size <= 1_024);
  }
  t.is([...recorder.pods()].length, 512);
  t.is(recorder.size, 1_024);
  t.is(recorder.dropped, 40_000 - 1_024);
});

test('FlightRecorder: keeps once, and counts, what fails again and again in the same way', (t) => {
  const recorder = new FlightRecorder();
  const failure = { code: 999, msg: 'the kernel refused', details: '' } as const;
  recorder.add('p', entry({ containerId: 'c' }));
  for (let time = 0; time < 1_000; time++) recorder.add('p', entry({ kind: 'del', containerId: 'c', failure }));
  recorder.add('p', entry({ kind: 'del', containerId: 'c', failure: { ...failure, msg: 'another reason' } }));
  recorder.add('p', entry({ kind: 'del', containerId: 'c' }));
  const [pod] = recorder.pods();
  t.deepEqual(
    pod?.entries.map(({ kind, repeats, failure: why }) => [kind, repeats ?? 0, why?.msg]),
    [
      ['add', 0, undefined],
      ['del', 999, 'the kernel refused'],
      ['del', 0, 'another reason'],
      ['del', 0, undefined],
    ],
  );
});

test('FlightRecorder: keeps repairs of the node whatever Pods come and go, and one that repeats once', (t) => {
  const recorder = new FlightRecorder({ pods: 2, operationsPerPod: 2, operations: 3, operationsOfNode: 2 });
  const repair = (cause: string, line: string) => entry({ kind: 'repair', cause, kernel: [() => [line]] });
  for (const line of ['rule 1', 'rule 2', 'rule 3', 'rule 3', 'rule 3']) recorder.addOfNode(repair('timer', line));
  for (let pod = 0; pod < 50; pod++) recorder.add(`p${pod}`, entry());
  recorder.addOfNode(repair('rule del by ip (pid 7)', 'rule 3'));
  const [node] = recorder.pods();
  t.is(node?.pod, 'node');
  t.deepEqual(
    node?.entries.map(({ cause, repeats, kernel }) => [cause, repeats ?? 0, kernel.flatMap((render) => render())]),
    [
      ['timer', 2, ['rule 3']],
      ['rule del by ip (pid 7)', 0, ['rule 3']],
    ],
  );
  t.is(recorder.size, 4);
});
