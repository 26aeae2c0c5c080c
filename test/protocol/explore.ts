import { type Key, StateTable, sumOfFields } from './state-table.ts';
import { findBottomComponents, type Graph } from './strong-components.ts';

/** One step that a state allows. */
export type Move<S> = {
  /** What happens, for the reader of a trace. */
  readonly label: string;
  readonly next: S;
  /**
   * True for a step that the system takes by itself sooner or later: its own work, and time. False for what may never
   * happen: faults, crashes, Pods that come and go.
   */
  readonly isFair: boolean;
};

/** A system of states and steps. Every function must be pure: a trace is found again by walking it again. */
export type Model<S> = {
  readonly initial: S;
  /** Two states with the same key have the same future. */
  readonly keyOf: (state: S) => Key;
  /**
   * What may happen only so often, and how often it did: four bits each, least first. Of two states with one key the one
   * that has spent no more of anything can do all that the other can, so the other is not looked at. Nothing when absent.
   */
  readonly spentOf?: (state: S) => number;
  /** In the same order each time. */
  readonly movesOf: (state: S) => readonly Move<S>[];
  /** Says what is wrong with a state, or with how it was reached; undefined when nothing is. */
  readonly faultOf: (state: S) => string | undefined;
  /**
   * Says what is missing in a state that fair steps never leave for good; undefined when it may be an end. A model
   * without it is not asked where it ends.
   */
  readonly unfinished?: (state: S) => string | undefined;
};

/** How a fault comes about: with the least spent, and then in the fewest steps. */
type Trace = { readonly why: string; readonly steps: readonly string[] };

/** What an exploration saw. */
export type Exploration = {
  readonly states: number;
  readonly transitions: number;
  /** False when the limit of states ended it: nothing is said of what lies beyond. */
  readonly isComplete: boolean;
  readonly violation?: Trace;
};

/**
 * Visits every state that can be reached, those first for which least was spent and of them the nearest, until one is at
 * fault. Then, if the model says what an end is, looks at the components that fair steps never leave: under any fair
 * schedule the system ends up in one of them, so each state of each of them must be an end.
 * States are told apart by 64 bits of their key: of a million states two are mixed up once in thirty million runs.
 */
export function explore<S>(model: Model<S>, maxStates = 10_000_000): Exploration {
  const table = new StateTable();
  const fair = new FairSteps();
  const missing = new Map<number, string>();
  const queue = new SpentQueue<{ readonly index: number; readonly state: S }>();
  let transitions = 0;
  const sum = () => ({ states: table.size, transitions });

  const visit = (state: S, parent: number, move: number): { readonly index: number; readonly fault?: string } => {
    const spent = model.spentOf?.(state) ?? 0;
    const { index, isNew } = table.add(model.keyOf(state), spent, parent, move);
    if (!isNew) return { index };
    const gap = model.unfinished?.(state);
    if (gap !== undefined) missing.set(index, gap);
    queue.add(sumOfFields(spent), { index, state });
    const fault = model.faultOf(state);
    return fault === undefined ? { index } : { index, fault };
  };

  const first = visit(model.initial, 0, 0);
  if (first.fault !== undefined) return { ...sum(), isComplete: false, violation: { why: first.fault, steps: [] } };
  for (let next = queue.take(); next !== undefined; next = queue.take()) {
    const { index, state } = next;
    fair.begin(index);
    for (const [number, move] of model.movesOf(state).entries()) {
      transitions++;
      const seen = visit(move.next, index, number);
      if (seen.fault !== undefined) {
        return { ...sum(), isComplete: false, violation: trace(model, table, seen.index, seen.fault) };
      }
      if (move.isFair && seen.index !== index) fair.add(seen.index);
    }
    if (table.size > maxStates) return { ...sum(), isComplete: false };
  }
  const stuck = model.unfinished === undefined ? undefined : findStuck(table.size, fair, missing);
  if (stuck === undefined) return { ...sum(), isComplete: true };
  const why = `fair steps lead nowhere else from here, and yet: ${missing.get(stuck)}`;
  return { ...sum(), isComplete: true, violation: trace(model, table, stuck, why) };
}

/** Renders a trace for people: one step a line, numbered. */
export function renderTrace({ why, steps }: Trace): string {
  return [...steps.map((step, i) => `${String(i + 1).padStart(3)}. ${step}`), `  => ${why}`].join('\n');
}

/** First in, first out, of what cost least. */
class SpentQueue<T> {
  #lines: { readonly items: (T | undefined)[]; taken: number }[] = [];

  add(spent: number, item: T): void {
    while (this.#lines.length <= spent) this.#lines.push({ items: [], taken: 0 });
    this.#lines[spent]?.items.push(item);
  }

  take(): T | undefined {
    for (const line of this.#lines) {
      if (line.taken === line.items.length) continue;
      const item = line.items[line.taken];
      // What was taken is not needed again: only its key is remembered.
      line.items[line.taken++] = undefined;
      return item;
    }
    return undefined;
  }
}

/** The fair steps of every state, in two flat arrays, and where those of each state begin and end. */
class FairSteps {
  #begins = new Uint32Array(1 << 16);
  #ends = new Uint32Array(1 << 16);
  #targets = new Uint32Array(1 << 18);
  #state = 0;
  #steps = 0;

  begin(state: number): void {
    while (state >= this.#begins.length) [this.#begins, this.#ends] = [grown(this.#begins), grown(this.#ends)];
    this.#state = state;
    this.#begins[state] = this.#steps;
    this.#ends[state] = this.#steps;
  }

  add(target: number): void {
    if (this.#steps >= this.#targets.length) this.#targets = grown(this.#targets);
    this.#targets[this.#steps++] = target;
    this.#ends[this.#state] = this.#steps;
  }

  get graph(): Graph {
    return { begins: this.#begins, ends: this.#ends, targets: this.#targets };
  }
}

function grown(array: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(array.length * 2);
  larger.set(array);
  return larger;
}

/** The nearest state of a bottom component that is no end. */
function findStuck(states: number, fair: FairSteps, missing: ReadonlyMap<number, string>): number | undefined {
  const isBottom = findBottomComponents(states, fair.graph);
  for (let index = 0; index < states; index++) {
    if (isBottom[index] === 1 && missing.has(index)) return index;
  }
  return undefined;
}

/** Walks the way to a state again to name its steps. */
function trace<S>(model: Model<S>, table: StateTable, index: number, why: string): Trace {
  const steps: string[] = [];
  let state = model.initial;
  for (const number of table.wayTo(index)) {
    const move = model.movesOf(state)[number];
    if (move === undefined) throw new Error('the model is not pure: a step is gone when its trace is walked again');
    steps.push(move.label);
    state = move.next;
  }
  return { why, steps };
}
