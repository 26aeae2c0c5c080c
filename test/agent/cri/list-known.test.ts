import test from 'ava';
import { listKnown } from '../../../agent/cri/list-known.ts';
import { CriError, type CriSandbox } from '../../../agent/cri/sandbox-view.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const WAIT_MS = 30_000;

type Case = {
  /** Ids that the runtimes list at each question, the last one again and again; undefined: none answers. */
  readonly answers: readonly (readonly string[] | undefined)[];
  readonly ids: readonly string[];
  /** What is returned, after how many milliseconds; undefined: an error. */
  readonly listed: readonly string[] | undefined;
  readonly afterMs: number;
};

const lists = test.macro(async (t, { answers, ids, listed, afterMs }: Case) => {
  const clock = new VirtualClock();
  let asked = 0;
  const list = async (): Promise<readonly CriSandbox[]> => {
    const answer = answers[Math.min(asked++, answers.length - 1)];
    if (answer === undefined) throw new CriError('CRI_UNREACHABLE', 'none answers');
    return answer.map((id) => ({ id, state: 'ready', podName: '', podNamespace: '', podUid: '' }));
  };
  const wanted = { clock, ids: new Set(ids), untilMs: WAIT_MS };
  const work = listKnown({ list }, wanted, new AbortController().signal).then(
    (sandboxes) => sandboxes.map(({ id }) => id),
    () => undefined,
  );
  t.deepEqual(await clock.run(work), listed);
  t.is(clock.monotonicMs(), afterMs);
});

test('listKnown: the first list of a node without traces', lists, {
  answers: [['a']],
  ids: [],
  listed: ['a'],
  afterMs: 0,
});
test('listKnown: the runtime of the Pods answers after another one', lists, {
  answers: [['other'], ['other'], ['other', 'a']],
  ids: ['a', 'b'],
  listed: ['other', 'a'],
  afterMs: 2_000,
});
test('listKnown: it starts meanwhile', lists, {
  answers: [undefined, ['a']],
  ids: ['a'],
  listed: ['a'],
  afterMs: 1_000,
});
test('listKnown: only another one answers', lists, {
  answers: [['other']],
  ids: ['a'],
  listed: ['other'],
  afterMs: WAIT_MS,
});
test('listKnown: none answers', lists, { answers: [undefined], ids: ['a'], listed: undefined, afterMs: WAIT_MS });
