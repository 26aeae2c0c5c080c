import type { FaultAction } from '../../../sim/kube-api/faults.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { Disturbance } from '../life.ts';
import { VANDALISM } from '../standins/vandals.ts';
import { WRONG_INPUT } from '../standins/wrong-writers.ts';
import { between, type Draw, Streams } from '../streams.ts';
import type { Action, Deed, Script, Temper } from './deed.ts';

const MINUTE_MS = 60_000;

/** Draws a script: first its temper, then what happens, each class of it from a stream of its own. Pure. */
export function drawScript(seed: number, only: Partial<Pick<Temper, 'isWhole'>> = {}): Script {
  const streams = new Streams(seed);
  const temper = { ...drawTemper(streams), ...only };
  const actions = [
    ...drawPods(temper, streams.of('script pods')),
    ...CLASSES.flatMap((one) => drawFaults(one, temper, streams.of(`script ${one.name}`))),
  ];
  return { seed, temper, actions: actions.sort((a, b) => a.atMs - b.atMs) };
}

/** A class of faults. */
type FaultClass = {
  readonly name: string;
  /** How often it strikes, times a minute, where it does. */
  readonly rate: number;
  /** Only where agents are real. */
  readonly isOfAgents?: true;
  readonly draw: (draw: Draw, temper: Temper) => readonly (Deed & { readonly afterMs?: number })[];
};

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

/** Calls of ipamd by which a node gets and gives back ENIs and addresses. */
const CLOUD_CALLS: readonly string[] = [
  ...['AssignPrivateIpAddresses', 'UnassignPrivateIpAddresses', 'CreateNetworkInterface', 'AttachNetworkInterface'],
  ...['DetachNetworkInterface', 'DeleteNetworkInterface'],
];
const LEADER_CALLS: readonly string[] = [...CLOUD_CALLS, 'update nodeeniconfigs'];
const LEADER_FATES: readonly Disturbance[] = [
  ...([{ kind: 'die' }, { kind: 'lose' }, { kind: 'late', ms: 45_000 }, { kind: 'stray', ms: 20_000 }] as const),
];
const AGENT_CALLS: readonly string[] = [
  ...['journal.putLease', 'journal.activateLease', 'journal.markReleasing', 'journal.eraseLease'],
  ...['journal.putOffers', 'journal.eraseOffers', 'journal.putEni', 'link.addPair', 'link.delete', 'nft.load'],
];
const API_ACTIONS: readonly FaultAction[] = [
  ...([{ kind: 'drop-before' }, { kind: 'drop-after' }, { kind: 'delay', ms: 8_000 }] as const),
  { kind: 'status', code: 500 },
  { kind: 'status', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 },
];
const CLIENTS: readonly string[] = ['ipamd-*', 'agent-*'];

/** Pods whose addresses are kept, one after the other under few names. */
const KEPT_PODS = 'kept Pods';

const CLASSES: readonly FaultClass[] = [
  {
    name: 'cloud',
    rate: 4,
    draw: (draw) => {
      const [fault, call, times] = [oneOf(draw, CLOUD_FAULTS), oneOf(draw, CLOUD_CALLS), 1 + below(draw, 3)];
      const isOfTask = fault.kind === 'task' || fault.kind === 'slow-task';
      return [{ kind: 'cloud', fault, calls: isOfTask || draw() < 0.5 ? call : '*', times }];
    },
  },
  {
    name: 'past',
    rate: 1,
    draw: (draw) => {
      const fault = { kind: 'stale', ms: Math.round(between(draw, [1_000, 20_000])) } as const;
      return [{ kind: 'cloud', fault, calls: 'Describe*', times: 1 + below(draw, 3) }];
    },
  },
  {
    name: 'calls',
    rate: 3,
    draw: (draw) => {
      const [client, action] = [oneOf(draw, CLIENTS), oneOf(draw, API_ACTIONS)];
      return [{ kind: 'api', client, verbs: ['update', 'patch', 'create'], action, times: 1 + below(draw, 3) }];
    },
  },
  { name: 'watches', rate: 0.5, draw: (draw) => [{ kind: 'cut', client: oneOf(draw, [...CLIENTS, '*']) }] },
  {
    name: 'partitions',
    rate: 0.2,
    draw: (draw) => [
      { kind: 'partition', client: oneOf(draw, CLIENTS), ms: Math.round(between(draw, [2_000, 60_000])) },
    ],
  },
  { name: 'absences', rate: 0.1, draw: (draw) => [{ kind: 'away', ms: Math.round(between(draw, [5_000, 150_000])) }] },
  { name: 'hands', rate: 0.1, draw: (draw, { nodes }) => [{ kind: 'detach', node: below(draw, nodes) }] },
  {
    name: KEPT_PODS,
    rate: 2,
    draw: (draw, { nodes }) => {
      const [name, node] = [`web-${below(draw, 3)}`, below(draw, nodes)];
      return [
        { kind: 'pod', name, node, isKept: true },
        { kind: 'end', name, node, afterMs: Math.round(between(draw, [3_000, 90_000])) },
      ];
    },
  },
  {
    name: 'wrong input',
    rate: 1,
    draw: (draw, { nodes }) => {
      const name = `wrong-${below(draw, 1_000_000)}`;
      const [what, node, choice] = [oneOf(draw, WRONG_INPUT), below(draw, nodes), below(draw, 1_000)];
      const wrong = { kind: 'wrong', what, name, node, choice } as const;
      const afterMs = Math.round(between(draw, [3_000, 180_000]));
      return draw() < 0.3 ? [wrong] : [wrong, { kind: 'right', name, afterMs }];
    },
  },
  {
    name: 'restores',
    rate: 0.1,
    draw: (draw) => [{ kind: 'backup' }, { kind: 'restore', afterMs: Math.round(between(draw, [5_000, 60_000])) }],
  },
  {
    name: 'leaders',
    rate: 0.6,
    draw: (draw) => {
      const fate = draw();
      if (fate < 0.5) return [{ kind: 'kill', whom: fate < 0.1 ? 'all' : 'leader' }];
      if (fate < 0.75) return [{ kind: 'die', whom: 'leader', points: 1 + below(draw, 60) }];
      return [{ kind: 'pause', ms: Math.round(between(draw, [5_000, 60_000])) }];
    },
  },
  {
    name: 'moments of leaders',
    rate: 1,
    draw: (draw) => [
      { kind: 'moment', whom: 'leader', call: oneOf(draw, LEADER_CALLS), what: oneOf(draw, LEADER_FATES) },
    ],
  },
  {
    name: 'agents',
    rate: 1.5,
    isOfAgents: true,
    draw: (draw, { nodes }) => {
      const whom = below(draw, nodes);
      return [draw() < 0.4 ? { kind: 'kill', whom } : { kind: 'die', whom, points: 1 + below(draw, 60) }];
    },
  },
  {
    name: 'moments of agents',
    rate: 1,
    isOfAgents: true,
    draw: (draw, { nodes }) => [
      { kind: 'moment', whom: below(draw, nodes), call: oneOf(draw, AGENT_CALLS), what: { kind: 'die' } },
    ],
  },
  {
    name: 'vandals',
    rate: 1,
    isOfAgents: true,
    draw: (draw, { nodes }) => [{ kind: 'vandal', node: below(draw, nodes), what: oneOf(draw, VANDALISM) }],
  },
  {
    name: 'clocks',
    rate: 0.1,
    draw: (draw, { nodes }) => {
      const machines = ['ipamd-a', 'ipamd-b', ...Array.from({ length: nodes }, (_, at) => `node-0${at + 1}`)];
      return [
        { kind: 'clock', machine: oneOf(draw, machines), ms: Math.round(between(draw, [-3_600_000, 3_600_000])) },
      ];
    },
  },
  {
    name: 'disks',
    rate: 0.2,
    isOfAgents: true,
    draw: (draw, { nodes }) => [
      { kind: 'disk', node: below(draw, nodes), ms: Math.round(between(draw, [1_000, 20_000])) },
    ],
  },
  {
    name: 'nodes',
    rate: 0.1,
    draw: (draw, { nodes }) => (draw() < 0.5 ? [{ kind: 'join' }] : [{ kind: 'leave', node: below(draw, nodes) }]),
  },
];

/** How much more often, or less, a class strikes in one script than in another. */
const SPREAD = 4;

function drawTemper(streams: Streams): Temper {
  const rates: Record<string, number> = {};
  for (const { name, rate } of CLASSES) {
    const draw = streams.of(`temper ${name}`);
    const strikes = draw() < 0.5;
    const share = SPREAD ** between(draw, [-1, 1]);
    if (strikes) rates[name] = Number((rate * share).toPrecision(2));
  }
  const draw = streams.of('temper');
  const isWhole = draw() < 0.5;
  return {
    ...{ isWhole, nodes: 1 + below(draw, 3), minutes: isWhole ? 5 : 10 },
    cooldownMs: oneOf(draw, [10_000, 20_000, 30_000]),
    flags: KEPT_PODS in rates ? ['--enable-static-ip=true', '--claim-expired-duration=10m'] : [],
    agentFlags: draw() < 0.3 ? ['--rule-mode=per-pod'] : [],
    rates,
  };
}

function drawFaults({ name, isOfAgents, draw: drawDeeds }: FaultClass, temper: Temper, draw: Draw): readonly Action[] {
  const { rates = {}, isWhole, minutes } = temper;
  const rate = rates[name] ?? 0;
  if (rate === 0 || (isOfAgents === true && !isWhole)) return [];
  const actions: Action[] = [];
  for (let atMs = gap(draw, rate); atMs < minutes * MINUTE_MS; atMs += gap(draw, rate))
    for (const { afterMs = 0, ...deed } of drawDeeds(draw, temper))
      actions.push({ atMs: Math.round(atMs + afterMs), ...deed });
  return actions;
}

/** A node of two cores has 27 addresses, five of which are spare. */
const MOST_PODS = 14;
/** Times a minute that Pods come or go, on all nodes. */
const TURNS = 3;

function drawPods({ nodes, minutes }: Temper, draw: Draw): readonly Action[] {
  const actions: Action[] = [];
  const running: string[][] = Array.from({ length: nodes }, () => []);
  let made = 0;
  for (let atMs = 0; atMs < minutes * MINUTE_MS; atMs += gap(draw, TURNS)) {
    const node = below(draw, nodes);
    const pods = running[node] ?? [];
    const count = 1 + below(draw, 4);
    const comes = pods.length + count <= MOST_PODS && draw() < 0.6;
    for (let one = 0; one < count; one++) {
      const name = comes ? `pod-${++made}` : pods.splice(below(draw, pods.length), 1)[0];
      if (comes && name !== undefined) pods.push(name);
      if (name !== undefined) actions.push({ atMs: Math.round(atMs), kind: comes ? 'pod' : 'end', name, node });
    }
  }
  return actions;
}

/** Milliseconds until something happens again that happens so often a minute. */
function gap(draw: Draw, aMinute: number): number {
  return (-Math.log(1 - draw()) * MINUTE_MS) / aMinute;
}

function below(draw: Draw, count: number): number {
  return Math.floor(draw() * count);
}

function oneOf<T>(draw: Draw, [first, ...others]: readonly T[]): T {
  if (first === undefined) throw new Error('there is nothing to choose from');
  return others[below(draw, others.length + 1) - 1] ?? first;
}
