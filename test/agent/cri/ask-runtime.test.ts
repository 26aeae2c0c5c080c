import test from 'ava';
import { askRuntime } from '../../../agent/cri/ask-runtime.ts';
import { CriError, type CriSandbox, type SandboxView } from '../../../agent/cri/sandbox-view.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const WAIT_MS = 30_000;

type Case = {
  /** Ids that the runtimes list at each question, the last one again and again; undefined: none answers. */
  readonly answers: readonly (readonly string[] | undefined)[];
  readonly ids: readonly string[];
  /** The sandboxes of the answer, after how many milliseconds. */
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
  const view: SandboxView = { list, network: async (id) => ({ ips: [`ip of ${id}`] }), close: () => {} };
  const question = { ids: new Set(ids), patienceMs: WAIT_MS, unanswered: 'none answers' };
  const work = askRuntime({ view, clock, log: silentLogger }, question, new AbortController().signal);
  const { sandboxes, networks } = await clock.run(work);
  t.deepEqual(
    sandboxes?.map(({ id }) => id),
    listed,
  );
  t.deepEqual(
    [...networks],
    (listed ?? []).map((id) => [id, { ips: [`ip of ${id}`] }]),
  );
  t.is(clock.monotonicMs(), afterMs);
});

test('askRuntime: the first list of a node without traces', lists, {
  answers: [['a']],
  ids: [],
  listed: ['a'],
  afterMs: 0,
});
test('askRuntime: the runtime of the Pods answers after another one', lists, {
  answers: [['other'], ['other'], ['other', 'a']],
  ids: ['a', 'b'],
  listed: ['other', 'a'],
  afterMs: 2_000,
});
test('askRuntime: it starts meanwhile', lists, {
  answers: [undefined, ['a']],
  ids: ['a'],
  listed: ['a'],
  afterMs: 1_000,
});
test('askRuntime: only another one answers', lists, {
  answers: [['other']],
  ids: ['a'],
  listed: ['other'],
  afterMs: WAIT_MS,
});
test('askRuntime: none answers', lists, { answers: [undefined], ids: ['a'], listed: undefined, afterMs: WAIT_MS });
