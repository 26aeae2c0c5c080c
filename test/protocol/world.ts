import type { Cooldown, Offer } from '../../agent/journal/journal-content.ts';
import type { Lease } from '../../agent/journal/lease.ts';
import type { Supply } from '../../agent/journal/supply.ts';
import { EMPTY_POOL, type PoolState } from '../../agent/pool/pool-state.ts';
import type { AgentSpec } from '../../agent/supply/publication.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from '../../ipamd/decide/decision.ts';
import type { NodeView } from '../../ipamd/decide/node-view.ts';
import { type Baseline, baselineOf } from '../../ipamd/decide/with-confirmed-offers.ts';
import { type CloudAnswer, type CloudTruth, EMPTY_CLOUD } from './cloud-truth.ts';

/** One state of everything: frozen, and each step makes another. */
export type World = {
  readonly cloud: CloudTruth;
  readonly nec: Nec;
  /** An older state of the object, from which etcd may be restored. */
  readonly backup?: Nec;
  readonly agent: AgentSide;
  readonly ipamd: IpamdSide;
  /** Calls to the cloud under way, oldest first. */
  readonly calls: readonly Call[];
  readonly pods: readonly PodStage[];
  /** What is true of cooldowns, whatever the agent thinks: addresses whose last Pod ended a moment ago, oldest first. */
  readonly resting: readonly { readonly ip: string; readonly untilMs: number }[];
  /** What may still go wrong. */
  readonly left: Budget;
  readonly nowMs: number;
  readonly nextId: number;
  /** True once etcd was restored: what the object forgot, only the cloud's tags can tell. */
  readonly wasRestored: boolean;
};

/** The NodeENIConfig in etcd. Who wrote on an older one is refused: a new value is a new object, and so a new version. */
export type Nec = {
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
  /** The annotation that names the journal of the agent that wrote last. */
  readonly life: string | undefined;
};

/** absent: not there. waiting: in the API, without an address. running: has one. */
type PodStage = 'absent' | 'waiting' | 'running';

/** What may still happen of each kind. */
export type Budget = {
  readonly crashes: number;
  readonly faults: number;
  readonly restores: number;
  readonly tenants: number;
  /** How often a Pod may still come. */
  readonly pods: number;
};

/** The agent: what survives a crash, what does not, and its writes under way. */
export type AgentSide = {
  readonly pool: PoolState;
  readonly journal: AgentJournal;
  readonly writes: readonly AgentWrite[];
};

/** What the agent's journal holds, as far as the protocol goes. */
export type AgentJournal = {
  readonly leases: ReadonlyMap<string, Lease>;
  readonly cooldowns: ReadonlyMap<string, Cooldown>;
  readonly offers: ReadonlyMap<string, Offer>;
  readonly supply?: Supply;
};

/** A write of the agent: sent and not yet there, or there and not yet answered. */
export type AgentWrite = {
  readonly spec: AgentSpec;
  /** Only without the guard: the object that it was made on, and puts back. */
  readonly base?: Nec;
  readonly toRestore: readonly Offer[];
  readonly stage: 'sent' | 'applied';
  /** False when the agent has given it up, or died: it may arrive all the same. */
  readonly isHeard: boolean;
};

/** ipamd: one leader; another takes its place when it dies. All it knows is in the object. */
export type IpamdSide = {
  readonly epoch: number;
  /** What the object said when this leader first read it, or read it again after a restore. */
  readonly baseline: Baseline;
  /** Only without the guard: a write that was decided on an older object and is still on its way. */
  readonly write?: { readonly next: Nec; readonly call?: Intent };
};

/** A call to the cloud: sent and not yet there, or done and not yet answered. */
export type Call = {
  readonly intent: Intent;
  readonly answer?: CloudAnswer;
  /** False when its sender has given it up, or died: it may take effect all the same. */
  readonly isHeard: boolean;
};

/** What is left out on purpose, to see that the check finds it. */
export type PlantedFault = 'no-intent' | 'no-guard' | 'no-epoch' | 'no-cooldown' | 'withdrawn-not-honoured';

/** How large a world is, and what may go wrong in it. */
export type Setting = {
  readonly ips: readonly string[];
  readonly pods: number;
  readonly warm: { readonly min: number; readonly max: number };
  readonly budget: Budget;
  /** A restore finds the agent acquainted with what ipamd wrote last; else it may come while the agent knows less. */
  readonly restoreFindsAgentInformed?: boolean;
  /** The instance of the node, and what its view has beside. Default: the only one, nothing. */
  readonly instanceId?: string;
  readonly also?: (view: NodeView) => NodeView;
  /** Claims by the address that is theirs. Default: none. */
  readonly reserved?: ReadonlyMap<string, string>;
  readonly planted?: PlantedFault;
  /** Looks at the addresses of Pods alone: for planted faults that other invariants show sooner. */
  readonly isUseAllThatCounts?: boolean;
};

/** A node without ENIs and Pods. */
export function emptyWorld({ pods, budget }: Setting): World {
  return {
    cloud: EMPTY_CLOUD,
    nec: { spec: {}, status: {}, life: undefined },
    agent: { pool: EMPTY_POOL, journal: { leases: new Map(), cooldowns: new Map(), offers: new Map() }, writes: [] },
    ipamd: { epoch: 1, baseline: baselineOf({}, {}, 0) },
    calls: [],
    pods: Array.from({ length: pods }, () => 'absent' as const),
    resting: [],
    left: budget,
    nowMs: 0,
    nextId: 1,
    wasRestored: false,
  };
}

/** The sandbox of a Pod, as the agent's lease names it. */
export function podKey(pod: number): string {
  return `pod${pod}/eth0`;
}

/** Puts another object in etcd. Writes made on the former are refused when they arrive: they are as good as lost. */
export function withNec(world: World, nec: Nec, isGuarded: boolean): World {
  const writes = world.agent.writes.filter(({ stage }) => stage === 'applied' || !isGuarded);
  return {
    ...world,
    nec,
    agent: writes.length === world.agent.writes.length ? world.agent : { ...world.agent, writes },
  };
}
