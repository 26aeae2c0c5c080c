import { seededRandom } from '../../sim/support/seeded-random.ts';

/** What is done to the system at one moment. Durations in milliseconds. */
export type Disturbance =
  /** SIGKILL to an agent, which is started again at once; `twice`: once more amid its recovery. */
  | { readonly kind: 'kill-agent'; readonly node: string; readonly twice: boolean; readonly fuseMs: number }
  /** SIGKILL to whichever replica of ipamd leads. */
  | { readonly kind: 'kill-leader' }
  /** A node cannot reach the API server. */
  | { readonly kind: 'cut-node'; readonly node: string; readonly how: 'silent' | 'refused'; readonly lastsMs: number }
  /** The leader cannot reach the API server, or the cloud. */
  | {
      readonly kind: 'cut-leader';
      readonly from: 'kube' | 'cloud';
      readonly how: 'silent' | 'refused';
      readonly lastsMs: number;
    }
  /** Nobody can reach the API server. */
  | { readonly kind: 'cut-everybody'; readonly lastsMs: number }
  /** Every watch ends. */
  | { readonly kind: 'cut-watches' }
  /** The API server answers badly for a while. */
  | { readonly kind: 'kube-storm'; readonly storm: KubeStorm; readonly chance: number; readonly lastsMs: number }
  /** The cloud answers badly for a while. */
  | { readonly kind: 'cloud-storm'; readonly storm: CloudStorm; readonly chance: number; readonly lastsMs: number }
  /** Somebody deletes rules or tables of ours. */
  | { readonly kind: 'foreign-change'; readonly node: string; readonly change: ForeignChange }
  /** The container runtime does not answer. */
  | { readonly kind: 'runtime-down'; readonly node: string; readonly lastsMs: number }
  /** Somebody deletes all nftables rules once a second. */
  | { readonly kind: 'insist'; readonly node: string; readonly lastsMs: number }
  /** A local user opens connections to the metrics port and sends half a request on each. */
  | { readonly kind: 'half-requests'; readonly node: string; readonly count: number; readonly lastsMs: number }
  /** A runtime calls ADD with a FIFO in place of a network namespace. */
  | { readonly kind: 'fifo-netns'; readonly node: string }
  /** The node has a link whose name is not UTF-8. */
  | { readonly kind: 'odd-link'; readonly node: string; readonly lastsMs: number }
  /** A sandbox dies with its namespace and nobody calls DEL. */
  | { readonly kind: 'lose-sandbox'; readonly node: string }
  /** Another number of Pods is wanted on a node. */
  | { readonly kind: 'crowd'; readonly node: string; readonly pods: number }
  /** A node comes to rest and is judged by every invariant. */
  | { readonly kind: 'judge'; readonly node: string };

/** How the API server misbehaves. */
export type KubeStorm = (typeof KUBE_STORMS)[number];
/** How the cloud misbehaves. */
export type CloudStorm = (typeof CLOUD_STORMS)[number];
/** What others do to the kernel. */
export type ForeignChange = (typeof FOREIGN_CHANGES)[number];

const KUBE_STORMS = [
  'errors',
  'throttling',
  'conflicts',
  'drop-before',
  'drop-after',
  'hang',
  'delay',
  'watch-delay',
  'empty-list',
] as const;
const CLOUD_STORMS = [
  'throttling',
  'errors-before',
  'errors-after',
  'gateway',
  'hang-before',
  'hang-after',
  'reset-before',
  'reset-after',
  'stale',
  'failing-tasks',
  'vanishing-tasks',
  'slow-tasks',
  'latency',
] as const;
const FOREIGN_CHANGES = [
  ...(['pod-rule', 'eni-rules', 'nft-table', 'nft-ruleset', 'pod-routes'] as const),
  ...(['forwarding', 'veth-arp', 'veth-mac', 'veth-master'] as const),
] as const;
/** Disturbances that have no more than one name. */
const PLAIN = [
  ...(['kill-agent', 'kill-leader', 'cut-node', 'cut-everybody', 'cut-watches', 'runtime-down', 'insist'] as const),
  ...(['half-requests', 'fifo-netns', 'odd-link', 'lose-sandbox', 'crowd', 'judge'] as const),
] as const;

/** The name under which a disturbance is counted. */
export function nameOf(what: Disturbance): string {
  if (what.kind === 'kube-storm' || what.kind === 'cloud-storm') return `${what.kind} ${what.storm}`;
  if (what.kind === 'foreign-change') return `${what.kind} ${what.change}`;
  if (what.kind === 'cut-leader') return `${what.kind} ${what.from}`;
  return what.kind;
}

/** Every name that a plan may have, whether it has it or not. */
export const DISTURBANCE_NAMES: readonly string[] = [
  ...PLAIN,
  ...['kube', 'cloud'].map((from) => `cut-leader ${from}`),
  ...KUBE_STORMS.map((storm) => `kube-storm ${storm}`),
  ...CLOUD_STORMS.map((storm) => `cloud-storm ${storm}`),
  ...FOREIGN_CHANGES.map((change) => `foreign-change ${change}`),
];

/** A disturbance and when it begins, milliseconds after the load began. */
export type Planned = { readonly atMs: number; readonly what: Disturbance };

/** What a plan is made for. */
export type PlanSpec = {
  readonly seed: number;
  /** How long the load may last. */
  readonly lastsMs: number;
  /** The first one's agent is left to live after a quarter of the time: its memory tells of growth. */
  readonly nodes: readonly string[];
  /** Least and most Pods wanted on a node at a time. */
  readonly pods: readonly [number, number];
};

/** Until then nothing is disturbed, so that the run begins with everybody well. */
const CALM_MS = 3_000;
/** From then on, as a share of the time, the leader is only cut off, never killed: its memory tells of growth. */
export const LAST_LEADER_KILL = 0.6;
/** A lost sandbox is collected a minute later; none is lost so late that the end would have to wait for it. */
export const LAST_LOSS = 0.5;
/** From then on the first node's agent is left to live. */
export const LAST_KILL_OF_FIRST = 0.25;

type Dice = {
  readonly random: () => number;
  between(least: number, most: number): number;
  pick<T>(list: readonly T[]): T;
};

type Kind = {
  /** Mean time from one to the next. */
  readonly everyMs: number;
  /** Share of the time from which on there are none. */
  readonly until?: number;
  readonly draw: (dice: Dice, spec: PlanSpec, share: number) => Disturbance;
};

const KINDS: readonly Kind[] = [
  { everyMs: 7_000, draw: drawKillAgent },
  { everyMs: 40_000, until: LAST_LEADER_KILL, draw: () => ({ kind: 'kill-leader' }) },
  { everyMs: 30_000, draw: (dice, { nodes }) => ({ kind: 'cut-node', node: dice.pick(nodes), ...drawCut(dice) }) },
  {
    everyMs: 45_000,
    draw: (dice) => ({ kind: 'cut-leader', from: dice.pick(['kube', 'cloud']), ...drawCut(dice) }),
  },
  { everyMs: 70_000, draw: (dice) => ({ kind: 'cut-everybody', lastsMs: dice.between(1_000, 5_000) }) },
  { everyMs: 15_000, draw: () => ({ kind: 'cut-watches' }) },
  {
    everyMs: 12_000,
    draw: (dice) => ({ kind: 'kube-storm', storm: dice.pick(KUBE_STORMS), ...drawStorm(dice) }),
  },
  {
    everyMs: 8_000,
    draw: (dice) => ({ kind: 'cloud-storm', storm: dice.pick(CLOUD_STORMS), ...drawStorm(dice) }),
  },
  {
    everyMs: 12_000,
    draw: (dice, { nodes }) => ({
      kind: 'foreign-change',
      node: dice.pick(nodes),
      change: dice.pick(FOREIGN_CHANGES),
    }),
  },
  {
    everyMs: 40_000,
    draw: (dice, { nodes }) => ({
      kind: 'runtime-down',
      node: dice.pick(nodes),
      lastsMs: dice.between(3_000, 10_000),
    }),
  },
  {
    everyMs: 15_000,
    until: LAST_LOSS,
    draw: (dice, { nodes }) => ({ kind: 'lose-sandbox', node: dice.pick(nodes) }),
  },
  {
    everyMs: 4_000,
    draw: (dice, { nodes, pods }) => ({
      kind: 'crowd',
      node: dice.pick(nodes),
      pods: Math.round(dice.between(pods[0], pods[1])),
    }),
  },
  { everyMs: 35_000, draw: (dice, { nodes }) => ({ kind: 'judge', node: dice.pick(nodes) }) },
  {
    everyMs: 45_000,
    draw: (dice, { nodes }) => ({
      kind: 'half-requests',
      node: dice.pick(nodes),
      count: Math.round(dice.between(300, 2_000)),
      lastsMs: Math.round(dice.between(1_000, 5_000)),
    }),
  },
  { everyMs: 40_000, draw: (dice, { nodes }) => ({ kind: 'fifo-netns', node: dice.pick(nodes) }) },
  {
    everyMs: 45_000,
    draw: (dice, { nodes }) => ({
      kind: 'insist',
      node: dice.pick(nodes),
      lastsMs: Math.round(dice.between(3_000, 8_000)),
    }),
  },
  {
    everyMs: 40_000,
    draw: (dice, { nodes }) => ({
      kind: 'odd-link',
      node: dice.pick(nodes),
      lastsMs: Math.round(dice.between(1_000, 5_000)),
    }),
  },
];

/** Plans what is done to a system and when; the same seed, the same plan. In order of time. */
export function planDisturbances(spec: PlanSpec): readonly Planned[] {
  return KINDS.flatMap((kind, index) => {
    // A stream for each kind: another pace of one does not change what is drawn of the others.
    const dice = diceOf(seededRandom(spec.seed * 101 + index));
    return timesOf(kind, spec, dice).map((atMs) => ({ atMs, what: kind.draw(dice, spec, atMs / spec.lastsMs) }));
  }).sort((a, b) => a.atMs - b.atMs);
}

/** Moments a mean time apart: from half of it to one and a half. */
function timesOf({ everyMs, until = 1 }: Kind, { lastsMs }: PlanSpec, dice: Dice): readonly number[] {
  const times: number[] = [];
  let atMs = CALM_MS + everyMs * dice.random();
  while (atMs < lastsMs * until) {
    times.push(Math.round(atMs));
    atMs += everyMs * (0.5 + dice.random());
  }
  return times;
}

function drawKillAgent(dice: Dice, { nodes }: PlanSpec, share: number): Disturbance {
  const mortal = share < LAST_KILL_OF_FIRST || nodes.length === 1 ? nodes : nodes.slice(1);
  return {
    kind: 'kill-agent',
    node: dice.pick(mortal),
    twice: dice.random() < 0.25,
    fuseMs: Math.round(dice.between(0, 500)),
  };
}

function drawCut(dice: Dice): { readonly how: 'silent' | 'refused'; readonly lastsMs: number } {
  return { how: dice.pick(['silent', 'refused']), lastsMs: Math.round(dice.between(2_000, 9_000)) };
}

function drawStorm(dice: Dice): { readonly chance: number; readonly lastsMs: number } {
  return {
    chance: Math.round(dice.between(5, 40)) / 100,
    lastsMs: Math.round(dice.between(3_000, 12_000)),
  };
}

function diceOf(random: () => number): Dice {
  return {
    random,
    between: (least, most) => least + (most - least) * random(),
    pick: (list) => {
      const found = list[Math.floor(random() * list.length)];
      if (found === undefined) throw new RangeError('nothing to pick from');
      return found;
    },
  };
}
