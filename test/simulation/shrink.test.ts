import test from 'ava';
import type { Action, Script } from './script/deed.ts';
import { shrink, type TryScript } from './script/shrink.ts';

const TEMPER = {
  isWhole: true,
  nodes: 3,
  minutes: 5,
  cooldownMs: 10_000,
  flags: [],
  agentFlags: [],
  ccmFlags: [],
} as const;
const pod = (serial: number): Action => ({
  atMs: serial * 1_000,
  kind: 'pod',
  name: `pod-${serial}`,
  node: serial % 3,
});
const KILL: Action = { atMs: 31_500, kind: 'kill', whom: 1 };
const SCRIPT: Script = {
  seed: 1,
  temper: TEMPER,
  actions: [
    ...Array.from({ length: 31 }, (_, at) => pod(at + 1)),
    KILL,
    ...Array.from({ length: 31 }, (_, at) => pod(at + 32)),
  ],
};

/** Fails at the kill of an agent where pod-4 was made before, and in another way where pod-7 was made. */
const play: TryScript = async ({ actions }, endMs) => {
  const made = new Set<string>();
  for (const action of actions) {
    if (action.atMs > endMs) return undefined;
    if (action.kind === 'pod') made.add(action.name);
    if (action.kind === 'kill' && made.has('pod-4'))
      return { auditor: 'A8', atMs: action.atMs, text: `after ${action.atMs} ms` };
  }
  return made.has('pod-7') ? { auditor: 'A5', atMs: 0, text: 'another' } : undefined;
};

test('shrink: leaves what the violation needs, on one node, without waits', async (t) => {
  const seen = await play(SCRIPT, Number.POSITIVE_INFINITY);
  if (seen === undefined) throw new Error('it does not fail');
  const { script, violation, runs } = await shrink(SCRIPT, seen, play);
  t.deepEqual(script.actions, [
    { atMs: 0, kind: 'pod', name: 'pod-4', node: 0 },
    { atMs: 0, kind: 'kill', whom: 0 },
  ]);
  t.is(script.temper.nodes, 1);
  t.is(script.temper.ccmFlags, undefined);
  t.is(violation.text, 'after 0 ms');
  t.true(runs < 40, `${runs} runs`);
});

test('shrink: ends after so many runs, with what fails', async (t) => {
  const seen = { auditor: 'A8', atMs: 31_500, text: 'after 31500 ms' };
  const { script, runs } = await shrink(SCRIPT, seen, play, 5);
  t.is(runs, 5);
  t.like(await play(script, Number.POSITIVE_INFINITY), { auditor: 'A8' });
});
