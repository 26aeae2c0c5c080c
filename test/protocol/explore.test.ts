import test from 'ava';
import { explore, type Model, type Move, renderTrace } from './explore.ts';

/** Two clients take one lock by reading it and then writing it; `isAtomic` does both at once. */
type LockState = { readonly lock: string; readonly clients: readonly ('idle' | 'saw-free' | 'holds')[] };

function lockModel(isAtomic: boolean): Model<LockState> {
  const withClient = (state: LockState, i: number, now: LockState['clients'][number], lock = state.lock) => ({
    lock,
    clients: state.clients.map((client, j) => (i === j ? now : client)),
  });
  return {
    initial: { lock: 'free', clients: ['idle', 'idle'] },
    keyOf: (state) => JSON.stringify(state),
    movesOf: (state) =>
      state.clients.flatMap((client, i): readonly Move<LockState>[] => {
        const move = (label: string, next: LockState) => [{ label: `client ${i} ${label}`, next, isFair: true }];
        if (client === 'holds') return move('gives back', withClient(state, i, 'idle', 'free'));
        if (client === 'saw-free') return move('writes', withClient(state, i, 'holds', `by ${i}`));
        if (state.lock !== 'free') return [];
        return isAtomic
          ? move('takes', withClient(state, i, 'holds', `by ${i}`))
          : move('reads', withClient(state, i, 'saw-free'));
      }),
    faultOf: ({ clients }) => (clients.every((client) => client === 'holds') ? 'both hold the lock' : undefined),
  };
}

test('explore: finds the shortest way to two owners when a lock is read before it is written', (t) => {
  const { violation } = explore(lockModel(false));
  t.is(violation?.why, 'both hold the lock');
  t.deepEqual(violation?.steps, ['client 0 reads', 'client 1 reads', 'client 0 writes', 'client 1 writes']);
});

test('explore: visits every state once and finds no fault when the lock is taken in one step', (t) => {
  t.deepEqual(explore(lockModel(true)), { states: 3, transitions: 4, isComplete: true });
});

test('explore: says that it is not complete when there are more states than allowed', (t) => {
  const counter: Model<number> = {
    initial: 0,
    keyOf: String,
    movesOf: (n) => [{ label: 'count', next: n + 1, isFair: true }],
    faultOf: () => undefined,
  };
  t.false(explore(counter, 100).isComplete);
});

/** A message is sent until it is answered; when `repeats` is false it is sent once. It may be lost once. */
type SendState = { readonly at: 'sender' | 'wire' | 'waiting' | 'done'; readonly losses: number };

function sendModel(repeats: boolean): Model<SendState> {
  const movesOf = ({ at, losses }: SendState): readonly Move<SendState>[] => {
    const move = (label: string, next: SendState['at'], isFair = true): Move<SendState> => ({
      label,
      next: { at: next, losses: isFair ? losses : losses + 1 },
      isFair,
    });
    switch (at) {
      case 'sender':
        return [move('send', 'wire')];
      case 'wire':
        return [move('deliver', 'done'), ...(losses < 1 ? [move('lose', 'waiting', false)] : [])];
      case 'waiting':
        return repeats ? [move('time out', 'sender')] : [];
      case 'done':
        return [];
    }
  };
  return {
    initial: { at: 'sender', losses: 0 },
    keyOf: (state) => JSON.stringify(state),
    movesOf,
    faultOf: () => undefined,
    unfinished: ({ at }) => (at === 'done' ? undefined : 'the message has not arrived'),
  };
}

test('explore: finds the state that nobody leaves when a lost message is not sent again', (t) => {
  const { violation } = explore(sendModel(false));
  t.deepEqual(violation?.steps, ['send', 'lose']);
  t.regex(violation?.why ?? '', /the message has not arrived/);
});

test('explore: finds that every fair run ends when lost messages are sent again', (t) => {
  t.is(explore(sendModel(true)).violation, undefined);
});

test('explore: calls a circle that is never left unfinished when no state of it is an end', (t) => {
  const circle: Model<number> = {
    initial: 0,
    keyOf: String,
    movesOf: (n) => [{ label: `step ${n}`, next: n === 3 ? 1 : n + 1, isFair: true }],
    faultOf: () => undefined,
    unfinished: (n) => (n === 0 ? undefined : `turning at ${n}`),
  };
  t.deepEqual(explore(circle).violation?.steps, ['step 0']);
});

test('explore: looks once at a state that was reached with more and with less spent', (t) => {
  const walk: Model<{ readonly at: number; readonly falls: number }> = {
    initial: { at: 0, falls: 0 },
    keyOf: ({ at }) => String(at),
    spentOf: ({ falls }) => falls,
    movesOf: ({ at, falls }) =>
      at === 3
        ? []
        : [
            { label: 'falls on', next: { at: 3, falls: falls + 1 }, isFair: false },
            { label: 'walks', next: { at: at + 1, falls }, isFair: true },
          ],
    faultOf: () => undefined,
  };
  // Falling to the end comes first and costs one; walking there costs nothing, and what was seen before is looked at again.
  t.deepEqual(explore(walk), { states: 5, transitions: 6, isComplete: true });
});

test('renderTrace: numbers the steps and ends with what is wrong', (t) => {
  t.is(renderTrace({ why: 'too bad', steps: ['a', 'b'] }), '  1. a\n  2. b\n  => too bad');
});
