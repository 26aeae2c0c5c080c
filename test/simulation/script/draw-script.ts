import { VANDALISM } from '../standins/vandals.ts';
import { WRONG_INPUT } from '../standins/wrong-writers.ts';
import { WORLD } from '../stories/services.ts';
import { between, type Draw, Streams } from '../streams.ts';
import { BLOCK_CLASSES, BLOCK_FLAGS, BLOCKS } from './block-classes.ts';
import type { Action, Script, Temper } from './deed.ts';
import { EIP_CLASSES, EIP_PODS } from './eip-classes.ts';
import { API_ACTIONS, below, drawCloudFault, drawFate, type FaultClass, LEADER_FATES, oneOf } from './fault-class.ts';
import { SERVICE_CLASSES } from './service-classes.ts';

const MINUTE_MS = 60_000;

/** What is not left to chance; each may be absent. */
type Only = Partial<Pick<Temper, 'isWhole'>> & { readonly hasCcm?: boolean };

/** Draws a script: first its temper, then what happens, each class of it from a stream of its own. Pure. */
export function drawScript(seed: number, only: Only = {}): Script {
  const streams = new Streams(seed);
  const temper = drawTemper(streams, only);
  const actions = [
    ...drawPods(temper, streams.of('script pods')),
    ...CLASSES.flatMap((one) => drawFaults(one, temper, streams.of(`script ${one.name}`))),
  ];
  return { seed, temper, actions: actions.sort((a, b) => a.atMs - b.atMs) };
}

/** Calls of ipamd by which a node gets and gives back ENIs and addresses. */
const CLOUD_CALLS: readonly string[] = [
  ...['AssignPrivateIpAddresses', 'UnassignPrivateIpAddresses', 'CreateNetworkInterface', 'AttachNetworkInterface'],
  ...['DetachNetworkInterface', 'DeleteNetworkInterface'],
];
const LEADER_CALLS: readonly string[] = [...CLOUD_CALLS, 'update nodeeniconfigs'];
const AGENT_CALLS: readonly string[] = [
  ...['journal.putLease', 'journal.activateLease', 'journal.markReleasing', 'journal.eraseLease'],
  ...['journal.putOffers', 'journal.eraseOffers', 'journal.putEni', 'link.addPair', 'link.delete', 'nft.load'],
];
const CLIENTS: readonly string[] = ['ipamd-*', 'agent-*'];

/** All objects go back to an older state. */
const RESTORES = 'restores';
/** Pods whose addresses are kept, one after the other under few names. */
const KEPT_PODS = 'kept Pods';
/** Pods that have ENIs of their own; every other one keeps it for the next of its name. */
const EXCLUSIVE_PODS = 'exclusive Pods';

const CLASSES: readonly FaultClass[] = [
  {
    name: 'cloud',
    rate: 4,
    draw: (draw) => [drawCloudFault(draw, CLOUD_CALLS)],
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
    name: EXCLUSIVE_PODS,
    rate: 2,
    isOf: 'agents',
    draw: (draw, { nodes }) => {
      const [at, node] = [below(draw, 6), below(draw, nodes)];
      const pod = { kind: 'pod', name: `eni-${at}`, node, isExclusive: true } as const;
      const end = { kind: 'end', name: pod.name, node, afterMs: Math.round(between(draw, [3_000, 90_000])) } as const;
      return [at % 2 === 0 ? { ...pod, isKept: true } : pod, end];
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
    name: RESTORES,
    rate: 0.1,
    draw: (draw) => [{ kind: 'backup' }, { kind: 'restore', afterMs: Math.round(between(draw, [5_000, 60_000])) }],
  },
  {
    name: 'leaders',
    rate: 0.6,
    draw: (draw) => [drawFate(draw, 'leader')],
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
    isOf: 'agents',
    draw: (draw, { nodes }) => {
      const whom = below(draw, nodes);
      return [draw() < 0.4 ? { kind: 'kill', whom } : { kind: 'die', whom, points: 1 + below(draw, 60) }];
    },
  },
  {
    name: 'moments of agents',
    rate: 1,
    isOf: 'agents',
    draw: (draw, { nodes }) => [
      { kind: 'moment', whom: below(draw, nodes), call: oneOf(draw, AGENT_CALLS), what: { kind: 'die' } },
    ],
  },
  {
    name: 'vandals',
    rate: 1,
    isOf: 'agents',
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
    isOf: 'agents',
    draw: (draw, { nodes }) => [
      { kind: 'disk', node: below(draw, nodes), ms: Math.round(between(draw, [1_000, 20_000])) },
    ],
  },
  {
    name: 'nodes',
    rate: 0.1,
    draw: (draw, { nodes }) => (draw() < 0.5 ? [{ kind: 'join' }] : [{ kind: 'leave', node: below(draw, nodes) }]),
  },
  ...EIP_CLASSES,
  ...BLOCK_CLASSES,
  ...SERVICE_CLASSES,
];

/** How much more often, or less, a class strikes in one script than in another. */
const SPREAD = 4;

/** The share of scripts in which cloud-controller-manager runs: each of them takes half as long again. */
const CCM_SHARE = 0.3;

function drawTemper(streams: Streams, only: Only): Temper {
  const { hasCcm = streams.of('temper cloud-controller-manager')() < CCM_SHARE } = only;
  const rates: Record<string, number> = {};
  for (const { name, rate, share = 0.5, isOf } of CLASSES) {
    const draw = streams.of(`temper ${name}`);
    const strikes = draw() < share && (isOf !== 'ccm' || hasCcm);
    const often = SPREAD ** between(draw, [-1, 1]);
    if (strikes) rates[name] = Number((rate * often).toPrecision(2));
  }
  // What a claim says goes with it, and a person has to unbind the EIP.
  if (RESTORES in rates) delete rates[EIP_PODS];
  const draw = streams.of('temper');
  const drawn = draw() < 0.5;
  const { isWhole = drawn } = only;
  const hasExclusive = EXCLUSIVE_PODS in rates;
  const isKeeping = KEPT_PODS in rates || hasExclusive;
  return {
    ...{ isWhole, nodes: 1 + below(draw, 3), minutes: drawn ? 5 : 10, ...(hasExclusive && { cores: 8 }) },
    cooldownMs: oneOf(draw, [10_000, 20_000, 30_000]),
    flags: [
      ...(isKeeping ? ['--enable-static-ip=true', '--claim-expired-duration=10m'] : []),
      ...(hasExclusive ? ['--enable-direct-eni=true'] : []),
      // An EIP whose claim is lost is found within the time that a script may take to come to rest.
      ...(EIP_PODS in rates ? ['--sync-interval=1m', '--orphan-grace=2m'] : []),
      ...(BLOCKS in rates ? BLOCK_FLAGS : []),
    ],
    agentFlags: draw() < 0.3 ? ['--rule-mode=per-pod'] : [],
    ...(hasCcm && { ccmFlags: WORLD.ccmFlags }),
    rates,
  };
}

function drawFaults({ name, isOf, draw: drawDeeds }: FaultClass, temper: Temper, draw: Draw): readonly Action[] {
  const { rates = {}, isWhole, minutes } = temper;
  const rate = rates[name] ?? 0;
  if (rate === 0 || (isOf === 'agents' && !isWhole) || (isOf === 'EIPs' && !(EIP_PODS in rates))) return [];
  if (isOf === 'blocks' && !(BLOCKS in rates)) return [];
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
