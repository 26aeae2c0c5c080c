import type { FaultAction } from '../../../sim/kube-api/faults.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { Disturbance } from '../life.ts';
import { between, type Draw } from '../streams.ts';
import type { Deed, Temper, Whom } from './deed.ts';

/** A class of faults, or of what people do. */
export type FaultClass = {
  readonly name: string;
  /** How often it strikes, times a minute, where it does. */
  readonly rate: number;
  /** In which share of tempers it strikes; default half of them. */
  readonly share?: number;
  /** Whose it is: it strikes only where that is part of the world. */
  readonly isOf?: 'agents' | 'ccm' | 'EIPs' | 'blocks';
  readonly draw: (draw: Draw, temper: Temper) => readonly (Deed & { readonly afterMs?: number })[];
};

/** What goes wrong with a call of the cloud. */
const CLOUD_FAULTS: readonly Fault[] = [
  ...([{ kind: 'hang' }, { kind: 'hang', after: true }, { kind: 'reset' }, { kind: 'reset', after: true }] as const),
  { kind: 'error', code: 'InternalError', after: true },
  { kind: 'error', code: 'RequestLimitExceeded' },
  { kind: 'error', code: 'UnsupportedOperation.InvalidState' },
  { kind: 'http', status: 502, after: true },
  { kind: 'task', fate: 'fail' },
  { kind: 'task', fate: 'vanish' },
  { kind: 'slow-task', ms: 40_000 },
];

/** What goes wrong with a request to the API server. */
export const API_ACTIONS: readonly FaultAction[] = [
  ...([{ kind: 'drop-before' }, { kind: 'drop-after' }, { kind: 'delay', ms: 8_000 }] as const),
  { kind: 'status', code: 500 },
  { kind: 'status', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 },
];

/** What befalls a leader before a call. */
export const LEADER_FATES: readonly Disturbance[] = [
  ...([{ kind: 'die' }, { kind: 'lose' }, { kind: 'late', ms: 45_000 }, { kind: 'stray', ms: 20_000 }] as const),
];

/** Draws a fault of one of these calls of the cloud, or of whatever is called next. */
export function drawCloudFault(draw: Draw, calls: readonly string[]): Deed {
  const [fault, call, times] = [oneOf(draw, CLOUD_FAULTS), oneOf(draw, calls), 1 + below(draw, 3)];
  const isOfTask = fault.kind === 'task' || fault.kind === 'slow-task';
  return { kind: 'cloud', fault, calls: isOfTask || draw() < 0.5 ? call : '*', times };
}

/** Draws the death of a leader, now or some points later, or that it stands still. */
export function drawFate(draw: Draw, whom: Extract<Whom, string>): Deed {
  const fate = draw();
  if (fate < 0.5) return { kind: 'kill', whom: fate < 0.1 && whom === 'leader' ? 'all' : whom };
  if (fate < 0.75) return { kind: 'die', whom, points: 1 + below(draw, 60) };
  return { kind: 'pause', ms: Math.round(between(draw, [5_000, 60_000])), ...(whom !== 'leader' && { whom }) };
}

export function below(draw: Draw, count: number): number {
  return Math.floor(draw() * count);
}

export function oneOf<T>(draw: Draw, [first, ...others]: readonly T[]): T {
  if (first === undefined) throw new Error('there is nothing to choose from');
  return others[below(draw, others.length + 1) - 1] ?? first;
}
