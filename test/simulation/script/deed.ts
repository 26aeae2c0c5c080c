import type { FaultAction } from '../../../sim/kube-api/faults.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { Disturbance } from '../life.ts';
import type { TAMPERING } from '../standins/balancer-vandals.ts';
import type { VANDALISM } from '../standins/vandals.ts';
import type { WrongInput } from '../standins/wrong-writers.ts';

/** Whom something befalls: the ipamd that leads, the cloud-controller-manager that leads, or the agent of a node, counted from 0. */
export type Whom = 'leader' | 'ccm' | number;

/** Something that happens in a script. It carries all its choices: leaving out others changes nothing of it. */
export type Deed =
  | {
      readonly kind: 'pod';
      readonly name: string;
      readonly node: number;
      /** Its address or ENI is kept for the next one of its name. */
      readonly isKept?: true;
      /** It has an EIP, which ends with it or is kept for the next one of its name. */
      readonly eip?: 'made' | 'kept';
      /** Value of its label `app`, by which Services select it. */
      readonly app?: string;
      /** It is ready only when load balancers serve it. */
      readonly isGated?: true;
      /** It has an ENI of its own. */
      readonly isExclusive?: true;
    }
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
  | { readonly kind: 'pause'; readonly ms: number; readonly whom?: 'ccm' }
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
  | { readonly kind: 'disk'; readonly node: number; readonly ms: number }
  /** A Node is no backend for so long. */
  | { readonly kind: 'close'; readonly node: number; readonly ms: number }
  | ServiceDeed;

/** A deed that is about Services, Ingresses and their load balancers. */
export type ServiceDeed =
  /** A Service is made, or becomes so. */
  | {
      readonly kind: 'service';
      readonly name: string;
      readonly app: string;
      readonly ports: readonly number[];
      readonly ranges: readonly string[];
      readonly isDirect: boolean;
      /** Of one that may get another load balancer: whether it is internal. Absent: it keeps the one that it has. */
      readonly isInternal?: boolean;
    }
  /** An Ingress is made that leads a path to a Service, or becomes so; it may be of another class, and one of a group on a load balancer of others. */
  | {
      readonly kind: 'ingress';
      readonly name: string;
      readonly service: string;
      readonly path: string;
      readonly isOfOthers?: true;
      readonly isGrouped?: true;
    }
  | { readonly kind: 'end service' | 'end ingress'; readonly name: string }
  /** Probes of a Pod fail for so long. */
  | { readonly kind: 'unwell'; readonly name: string; readonly ms: number }
  | { readonly kind: 'tamper'; readonly service: string; readonly what: (typeof TAMPERING)[number] }
  /** The tags of a Service's load balancer are gone for so long; a person puts them back where it is still the Service's. */
  | { readonly kind: 'untag'; readonly service: string; readonly ms: number };

/** A deed, and when it is done: milliseconds since the script began. */
export type Action = { readonly atMs: number } & Deed;

/** What the world of a script is to be, and what goes wrong in it. */
export type Temper = {
  /** Whether the agents of nodes are real, on modelled machines. */
  readonly isWhole: boolean;
  readonly nodes: number;
  readonly minutes: number;
  /** Of each node; default 2. */
  readonly cores?: number;
  readonly cooldownMs: number;
  /** Flags of ipamd. */
  readonly flags: readonly string[];
  /** Flags of real agents. */
  readonly agentFlags: readonly string[];
  /** Flags of the cloud controller manager; absent: none runs. */
  readonly ccmFlags?: readonly string[];
  /** Times a minute that each class of faults strikes; those that are absent never do. What is drawn already needs it no more. */
  readonly rates?: Readonly<Record<string, number>>;
};

/** All that a run is made of: the same script is the same run. */
export type Script = { readonly seed: number; readonly temper: Temper; readonly actions: readonly Action[] };
