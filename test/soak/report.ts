import { floorsOf, judgeLife, type ProcessLife, tellFloors } from './process-watch.ts';
import { DISTURBANCE_NAMES } from './schedule.ts';
import type { Soak } from './soak.ts';
import { clockText, type Tally } from './tally.ts';

/** Bounds of the agent and of ipamd: a soak looks for leaks, not for a MiB. Where they are from: docs/testing.md. */
export const BOUNDS = {
  agent: { rssMiB: 200, growthMiB: 15, fdGrowth: 10 },
  // A standby has 22 descriptors amid an outage, a leader up to 40: one life may go from the one to the other.
  ipamd: { rssMiB: 250, growthMiB: 20, fdGrowth: 25 },
} as const;

/** Says how far the load is, in one line. */
export function progressLine(soak: Soak): string {
  const { tally, system } = soak;
  const live = system.nodes.map((node) => node.pods.length).join('+');
  const kills = `kills: agents ${tally.of('kills of agents')}, leaders ${tally.of('kills of the leader')}`;
  return [
    `${clockText(tally.elapsedMs)}  ADDs ${tally.of('ADDs')}${listed(tally, 'refused ADD ', ' refused: ')}`,
    `DELs ${tally.of('DELs')} (${tally.of('DELs left for the agent')} left)${listed(tally, 'refused DEL ', ' refused: ')}`,
    `Pods ${live} (addresses ${soak.addresses.length})`,
    kills,
    `disturbances ${sum(tally, 'done ')}`,
    `violations ${tally.violations.length}`,
  ].join('; ');
}

/** Says what became of it all, in a table. */
export function summary(soak: Soak, lives: readonly ProcessLife[]): string {
  const { tally } = soak;
  const seen = soak.system.cloud.host.seen;
  const bad = seen.filter(({ code }) => code !== 'OK');
  const rows: readonly (readonly [string, string | number])[] = [
    ['ADDs that gave a network', tally.of('ADDs')],
    ['ADDs refused, by CNI code', names(tally, 'refused ADD ')],
    ['ADDs of a sandbox that has its network', tally.of('ADDs of a sandbox that has its network')],
    ['of these made again after a change by others', tally.of('of these made again, with another address')],
    ['ADDs of the same sandbox after no answer', tally.of('ADDs of the same sandbox after no answer')],
    ['DELs', tally.of('DELs')],
    ['DELs refused, by CNI code', names(tally, 'refused DEL ')],
    ['DELs left for an agent that was away', tally.of('DELs left for the agent')],
    ['longest that one was left, ms', tally.of('longest that a DEL was left, ms')],
    ['DELs of a sandbox that is gone', tally.of('DELs of a sandbox that is gone')],
    ['longest ADD, ms', tally.of('longest ADD, ms')],
    ['lost sandboxes collected', tally.of('lost sandboxes collected')],
    ['kills of agents', tally.of('kills of agents')],
    ['kills of the leader', tally.of('kills of the leader')],
    ['looks into Pods', tally.of('looks into Pods')],
    ['pings answered at once, after a repair', `${tally.of('pings at once')}, ${tally.of('pings after a repair')}`],
    ['nodes judged good amid it', tally.of('nodes judged good')],
    ['sweeps over the cloud', tally.of('sweeps')],
    ['claims that the garbage collector took', tally.of('claims without owner collected')],
    ['calls of the cloud, answered badly', `${seen.length}, ${bad.length}`],
    ...DISTURBANCE_NAMES.map((what) => [`fault ${what}`, outcomeOf(tally, what, tally.of(`done ${what}`))] as const),
  ];
  const width = Math.max(...rows.map(([what]) => what.length));
  return [...rows.map(([what, value]) => `  ${what.padEnd(width)}  ${value}`), '', processTable(lives)].join('\n');
}

function outcomeOf(tally: Tally, what: string, count: number): string {
  return `tried ${count}, survived ${tally.of(`survived ${what}`)}`;
}

/** Says what is wrong with the processes' memory and descriptors. */
export function judgeLives(lives: readonly ProcessLife[]): readonly string[] {
  return lives.flatMap((life) => judgeLife(life, life.name.startsWith('ipamd') ? BOUNDS.ipamd : BOUNDS.agent));
}

/** The longest life of each process, and how many it had: short ones tell nothing of growth. */
function processTable(lives: readonly ProcessLife[]): string {
  const byName = [...Map.groupBy(lives, ({ name }) => name)];
  const rows = byName.map(([name, all]) => {
    const longest = all.toSorted((a, b) => lengthOf(b) - lengthOf(a))[0];
    const most = Math.max(...all.flatMap(({ samples }) => samples.map(({ rssMiB }) => rssMiB)));
    const cells = [
      String(all.length),
      clockText(longest === undefined ? 0 : lengthOf(longest)),
      most.toFixed(0),
      longest === undefined ? '' : tellFloors(floorsOf(longest, 'anonMiB')),
      longest === undefined ? '' : tellFloors(floorsOf(longest, 'fds')),
    ];
    return `  ${name.padEnd(12)}${cells.map((cell) => cell.padStart(16)).join('')}`;
  });
  const heads = ['lives', 'longest', 'MiB most', 'least anon MiB', 'least fds'];
  return [`  ${'process'.padEnd(12)}${heads.map((head) => head.padStart(16)).join('')}`, ...rows].join('\n');
}

function lengthOf({ samples }: ProcessLife): number {
  return (samples.at(-1)?.atMs ?? 0) - (samples[0]?.atMs ?? 0);
}

function listed(tally: Tally, prefix: string, lead: string): string {
  const found = names(tally, prefix);
  return found === 'none' ? '' : `${lead}${found}`;
}

function names(tally: Tally, prefix: string): string {
  const found = tally.under(prefix).map(([rest, count]) => `${rest}: ${count}`);
  return found.length === 0 ? 'none' : found.join(', ');
}

function sum(tally: Tally, prefix: string): number {
  return tally.under(prefix).reduce((total, [, count]) => total + count, 0);
}
