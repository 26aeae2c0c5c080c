import { setImmediate as yieldNow } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../support/law.ts';
import { IS_LONG, longTest, shortTest } from '../support/suite-part.ts';
import { type Exploration, explore, renderTrace } from './explore.ts';
import { keptModel } from './kept-model.ts';
import type { KeptSetting } from './kept-world.ts';

const NOTHING = { crashes: 0, faults: 0, restores: 0, tenants: 0, pods: 2 };
const ONE: KeptSetting = { claims: [{ name: 'a', ip: '10.0.0.11' }], budget: NOTHING };

async function look(t: ExecutionContext, setting: KeptSetting, maxStates?: number): Promise<Exploration> {
  t.timeout(600_000);
  await yieldNow();
  const started = process.cpuUsage();
  const exploration = explore(keptModel(setting), maxStates);
  const { states, transitions, violation } = exploration;
  t.log(`${states} states, ${transitions} transitions, ${(process.cpuUsage(started).user / 1e6).toFixed(1)} s of CPU`);
  if (violation !== undefined) t.log(`${violation.steps.length} steps to a violation:\n${renderTrace(violation)}`);
  return exploration;
}

const holds = test.macro(async (t, setting: KeptSetting) => {
  const { violation, isComplete } = await look(t, setting);
  t.true(isComplete);
  t.is(violation, undefined);
});

longTest('protocol: a kept address goes from node to node with its Pods when nothing goes wrong', holds, {
  ...ONE,
  budget: { ...NOTHING, pods: 3 },
});
longTest('protocol: a kept address is neither lost nor doubled whatever a crash and a message fault do', holds, {
  ...ONE,
  budget: { ...NOTHING, crashes: 1, faults: 1 },
});
longTest('protocol: an address that the cloud chose is kept from then on, whoever dies', holds, {
  ...ONE,
  claims: [{ name: 'a' }],
  budget: { ...NOTHING, crashes: 1 },
});
shortTest('protocol: an address that the cloud chose is kept from then on', holds, {
  ...ONE,
  claims: [{ name: 'a' }],
});

const finds = test.macro(async (t, why: RegExp, setting: KeptSetting) => {
  const { violation } = await look(t, setting, 300_000);
  t.regex(violation?.why ?? 'no violation', why);
});
const MORE = { ...NOTHING, pods: 3 };

shortTest('protocol check: finds that an address is moved while a sandbox has it', finds, /does not route/, {
  ...ONE,
  planted: 'takes-what-is-in-use',
});
longTest('protocol check: finds that an address that was let go of serves again at once', finds, /does not route/, {
  ...ONE,
  planted: 'serves-what-was-let-go',
  budget: MORE,
});
shortTest('protocol check: finds that two nodes have a call for one claim', finds, /two nodes have a call/, {
  ...ONE,
  planted: 'two-calls-for-one-claim',
});
shortTest('protocol check: finds that the cloud gives away what is kept, and nobody minds', finds, /is marked for/, {
  claims: [{ name: 'a', ip: '10.0.0.11' }, { name: 'b' }],
  planted: 'forgets-reserved',
  budget: { ...NOTHING, pods: 1 },
});

type Choice = readonly [number, number];

/** What a walk came to: nothing, when nothing is wrong. */
type Walk = { readonly fault?: string; readonly rest?: string; readonly steps?: readonly string[] };

/** Walks wherever the numbers lead, then on by fair steps alone until everything is at rest. */
function wander(setting: KeptSetting, choices: readonly Choice[]): Walk {
  const model = keptModel(setting);
  const steps: string[] = [];
  let state = model.initial;
  for (const [kind, number] of choices) {
    const moves = model.movesOf(state);
    const fair = moves.filter(({ isFair }) => isFair);
    const from = fair.length > 0 && kind > 0 ? fair : moves;
    const move = from[number % Math.max(1, from.length)];
    if (move === undefined) break;
    state = move.next;
    steps.push(move.label);
    const fault = model.faultOf(state);
    if (fault !== undefined) return { fault, steps };
  }
  for (let step = 0; step < MOST_STEPS; step++) {
    const missing = model.unfinished?.(state);
    if (missing === undefined) return {};
    const fair = model.movesOf(state).filter(({ isFair }) => isFair);
    const move = fair[(step * 7) % Math.max(1, fair.length)];
    if (move === undefined) return { rest: missing, steps };
    state = move.next;
    steps.push(move.label);
    const fault = model.faultOf(state);
    if (fault !== undefined) return { fault, steps };
  }
  return { rest: model.unfinished?.(state) ?? '', steps };
}

/** More than two nodes need to come to rest. */
const MOST_STEPS = 400;
const CHOICES = fc.array(fc.tuple(fc.nat(3), fc.nat(1_000)), { minLength: 20, maxLength: 150, size: 'max' });

const TWO: KeptSetting = {
  claims: [{ name: 'a', ip: '10.0.0.11' }, { name: 'b' }],
  budget: { ...NOTHING, crashes: 3, faults: 4, pods: 8 },
};

test('protocol: no history of two names loses an address, doubles one, or leaves a Pod waiting', async (t) => {
  const propertyOf = (t: ExecutionContext) =>
    fc.property(CHOICES, (choices) => {
      t.deepEqual(wander(TWO, choices), {});
    });
  await assertLaw(t, propertyOf, { numRuns: IS_LONG ? 500 : 40 });
});

/** A call is sent twice; one is refused, and the other is done when nobody waits for it any more. */
const DOUBLED: readonly number[] = [
  ...[389, 0, 0, 0, 0, 0, 416, 0, 0, 0, 0, 0, 0, 244, -93, -10, 376, 0, 156, 50, 25, 368, 227, 2, 466, 677, 53, 11],
  ...[-229, 191, 674, 83, 2, 194, 474, 177, 0, 0],
];

shortTest('protocol: takes in what the late one of a doubled call brought, which a random history found', (t) => {
  const choices = DOUBLED.map((number): Choice => (number < 0 ? [1, -number] : [0, number]));
  t.deepEqual(wander(TWO, choices), {});
});
