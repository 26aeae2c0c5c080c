import type { Violation } from '../world.ts';
import type { Action, Script } from './deed.ts';

/** Plays a script as far as a time, in milliseconds of its world; returns the first thing that must not be. */
export type TryScript = (script: Script, endMs: number) => Promise<Violation | undefined>;

/** A script that is as small as it became, and how often it was played for that. */
type Shrunk = { readonly script: Script; readonly violation: Violation; readonly runs: number };

/** What is seen must be seen again this long after it was first seen, or it counts as gone. */
const PATIENCE_MS = 60_000;

/**
 * Leaves out of a script what its violation does not need: what comes after it, nodes, cloud-controller-manager, whole kinds of
 * actions, single actions; then the waits between those that are left. A violation is the same when its auditor and its text without numbers are.
 */
export async function shrink(script: Script, seen: Violation, play: TryScript, most = 400): Promise<Shrunk> {
  let best: Shrunk = { script, violation: seen, runs: 0 };
  let runs = 0;
  const isOfEnd = /^(?:rest|Q)/.test(seen.auditor);
  const wins = async (change: Partial<Script>): Promise<boolean> => {
    if (runs >= most) return false;
    runs += 1;
    const smaller = { ...best.script, ...change };
    const violation = await play(smaller, isOfEnd ? Number.POSITIVE_INFINITY : best.violation.atMs + PATIENCE_MS);
    if (violation === undefined || kindOf(violation) !== kindOf(seen)) return false;
    best = { script: smaller, violation, runs };
    return true;
  };
  await wins({ actions: script.actions.filter(({ atMs }) => atMs <= seen.atMs) });
  for (let node = script.temper.nodes - 1; node >= 0 && best.script.temper.nodes > 1; node--)
    await wins(withoutNode(best.script, node));
  const { ccmFlags, ...temper } = best.script.temper;
  if (ccmFlags !== undefined) await wins({ temper });
  for (const kind of new Set(script.actions.map((action) => action.kind)))
    await wins({ actions: best.script.actions.filter((action) => action.kind !== kind) });
  await leaveOut(
    () => best.script.actions,
    (actions) => wins({ actions }),
  );
  for (let at = 0; at < best.script.actions.length; at++)
    for (const share of [0, 0.25, 0.5]) if (await wins({ actions: sooner(best.script.actions, at, share) })) break;
  return { ...best, runs };
}

/** What makes two violations the same. */
function kindOf({ auditor, text }: Violation): string {
  return `${auditor} ${text.replace(/[0-9]+/g, '#')}`;
}

/** Leaves out halves, quarters ... of the actions, then single ones, for as long as that wins (ddmin). */
async function leaveOut(
  left: () => readonly Action[],
  wins: (actions: readonly Action[]) => Promise<boolean>,
): Promise<void> {
  for (let size = Math.ceil(left().length / 2); size >= 1; ) {
    const before = left().length;
    for (let from = 0; from < left().length; ) {
      const actions = [...left().slice(0, from), ...left().slice(from + size)];
      if (!(await wins(actions))) from += size;
    }
    if (size > 1) size = Math.ceil(size / 2);
    else if (left().length === before) return;
  }
}

/** Leaves out a node and what is done on it; those after it are counted again. */
function withoutNode({ temper, actions }: Script, node: number): Partial<Script> {
  const left = actions.flatMap((action) => {
    const own = nodeOf(action);
    if (own === undefined || own < node) return [action];
    if (own === node) return [];
    return ['node' in action ? { ...action, node: own - 1 } : ({ ...action, whom: own - 1 } as Action)];
  });
  return { temper: { ...temper, nodes: temper.nodes - 1 }, actions: left };
}

function nodeOf(action: Action): number | undefined {
  if ('node' in action) return action.node;
  return 'whom' in action && typeof action.whom === 'number' ? action.whom : undefined;
}

/** The wait before an action is a share of what it was, and all that follow come as much sooner. */
function sooner(actions: readonly Action[], at: number, share: number): readonly Action[] {
  const [own = 0, before = 0] = [actions[at]?.atMs, actions[at - 1]?.atMs];
  const byMs = Math.round((own - before) * (1 - share));
  return actions.map((action, one) => (one < at ? action : { ...action, atMs: action.atMs - byMs }));
}
