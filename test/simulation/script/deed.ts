import type { FaultAction } from '../../../sim/kube-api/faults.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { Disturbance } from '../life.ts';
import type { VANDALISM } from '../standins/vandals.ts';
import type { WrongInput } from '../standins/wrong-writers.ts';

/** Whom something befalls: the ipamd that leads, or the agent of a node, counted from 0. */
export type Whom = 'leader' | number;

/** Something that happens in a script. It carries all its choices: leaving out others changes nothing of it. */
export type Deed =
  | { readonly kind: 'pod'; readonly name: string; readonly node: number; readonly isKept?: true }
  | { readonly kind: 'end'; readonly name: string; readonly node: number }
  | { readonly kind: 'join' }
  | { readonly kind: 'leave'; readonly node: number }
  /** The next calls of these names go wrong in the cloud. */
  | { readonly kind: 'cloud'; readonly fault: Fault; readonly calls: string; readonly times: number }
  /** The next requests of these clients to the API server go wrong. */
  | {
      readonly kind: 'api';
      readonly client: string;
      readonly verbs: readonly string[];
      readonly action: FaultAction;
      readonly times: number;
    }
  | { readonly kind: 'cut'; readonly client: string }
  | { readonly kind: 'partition'; readonly client: string; readonly ms: number }
  /** The API server is away for so long. */
  | { readonly kind: 'away'; readonly ms: number }
  /** Somebody detaches an ENI of a node in the console. */
  | { readonly kind: 'detach'; readonly node: number }
  /** All objects are kept, and later come back as they were. */
  | { readonly kind: 'backup' | 'restore' }
  | { readonly kind: 'kill'; readonly whom: Whom | 'all' }
  | { readonly kind: 'pause'; readonly ms: number }
  /** It dies so many points from now. */
  | { readonly kind: 'die'; readonly whom: Whom; readonly points: number }
  /** Something befalls it before its next call of a name. */
  | { readonly kind: 'moment'; readonly whom: Whom; readonly call: string; readonly what: Disturbance }
  | { readonly kind: 'vandal'; readonly node: number; readonly what: (typeof VANDALISM)[number] }
  /** People write something wrong about a node, and later take it back. */
  | ({ readonly kind: 'wrong'; readonly node: number } & WrongInput)
  | { readonly kind: 'right'; readonly name: string }
  /** A wall clock is set. */
  | { readonly kind: 'clock'; readonly machine: string; readonly ms: number }
  /** The disk of a node is full for so long. */
  | { readonly kind: 'disk'; readonly node: number; readonly ms: number };

/** A deed, and when it is done: milliseconds since the script began. */
export type Action = { readonly atMs: number } & Deed;

/** What the world of a script is to be, and what goes wrong in it. */
export type Temper = {
  /** Whether the agents of nodes are real, on modelled machines. */
  readonly isWhole: boolean;
  readonly nodes: number;
  readonly minutes: number;
  readonly cooldownMs: number;
  /** Flags of ipamd. */
  readonly flags: readonly string[];
  /** Flags of real agents. */
  readonly agentFlags: readonly string[];
  /** Times a minute that each class of faults strikes; those that are absent never do. What is drawn already needs it no more. */
  readonly rates?: Readonly<Record<string, number>>;
};

/** All that a run is made of: the same script is the same run. */
export type Script = { readonly seed: number; readonly temper: Temper; readonly actions: readonly Action[] };
