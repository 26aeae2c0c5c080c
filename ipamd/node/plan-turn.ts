import type { CallPriority } from '../../cloud/cloud.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type Allocatable, decideAllocatable } from '../nec/decide-allocatable.ts';
import { claimWaitsOf } from '../nec/decide-claims.ts';
import { directWaitsOf } from '../nec/decide-direct-growth.ts';
import { decideIntentTurn } from '../nec/decide-intent-turn.ts';
import { decideNode } from '../nec/decide-node.ts';
import type { Decision, Intent } from '../nec/decision.ts';
import { finishIntent, resendIntent } from '../nec/finish-intent.ts';
import { withCondition } from '../nec/judge-ready.ts';
import { keepInUse, takenBy } from '../nec/keep-in-use.ts';
import type { NodeProblem, NodeView } from '../nec/node-view.ts';
import type { Hold } from '../nec/scene.ts';
import { askedOf } from '../nec/supply.ts';
import { buildView, forbiddenCalls } from './build-view.ts';
import { callKeysOf } from './call-keys.ts';
import type { NodeDeps, NodeFactParts, NodeFactsAnswer } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import type { CallKind } from './running-calls.ts';

/** A node's object as it was read, or as it was repaired. */
export type TurnInput = {
  readonly name: string;
  readonly uid: string;
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
  /** Claims by their static address: such an address that is found in the cloud gets its mark. */
  readonly reservedIps?: () => ReadonlyMap<string, string> | undefined;
  /** Faults of the object itself that are worked around. */
  readonly faults?: readonly NodeProblem[];
};

/** A call, or the resolution of one, that is started for an intent. */
type Start = {
  readonly kind: CallKind;
  readonly intent: Intent;
  readonly priority: CallPriority;
  /** The node that an address is moved from: its object is read once more before the call. */
  readonly sourceNode?: string;
};

/** Result of one pass: the status to be written, and what is started then. */
export type Plan = {
  readonly status: NodeEniConfigStatus;
  /** Intents whose outcome is in the status: their calls are forgotten once it is written. */
  readonly finished: readonly string[];
  /** Started only after the status was written: the intent is recorded first. */
  readonly sends: readonly Start[];
  /** Started at once: they change nothing. */
  readonly looks: readonly Start[];
  readonly ending: Exclude<Decision, { readonly kind: 'begin' | 'write' }>;
  readonly problems: readonly NodeProblem[];
  /** Addresses of Pods that another client had marked for removal in the object; in use again in the status. */
  readonly putBack?: readonly string[];
  /** Recorded calls that another client wrote; removed without being made. */
  readonly refused?: readonly string[];
  /** Why claims whose Pods are here wait, by key; undefined when unknown. */
  readonly claimWaits?: ReadonlyMap<string, string>;
  /** How many addresses the node can have; undefined when unknown. */
  readonly allocatable?: Allocatable | undefined;
  /** Milliseconds until an intent may be resolved. */
  readonly waitMs: number | undefined;
};

/** More claim marks and calls than one pass can lead to. */
const MOST_STEPS = 64;

/**
 * Plans a node's next write: the outcomes of ended calls, then everything that is decided on top of them, in one
 * status. Does not wait for anything, so that the resources that it takes (addresses of subnets, probes of breakers)
 * and its decisions belong to one moment.
 */
export function planTurn(deps: NodeDeps, memory: NodeMemory, input: TurnInput, facts: NodeFactsAnswer): Plan {
  const ended = applyOutcomes(deps, memory, input, facts);
  const { looks, waitMs } = unattended(deps, memory, ended.status, ended.sends);
  const base = { finished: ended.finished, refused: ended.refused, looks, waitMs };
  if (facts.kind === 'unknown') {
    const { problem, afterMs } = facts;
    const wanted = { type: 'Ready', status: 'False' as const, reason: problem.reason, message: problem.message };
    const status = withCondition(ended.status, wanted, deps.ids);
    const ending: Plan['ending'] = { kind: 'hold', reason: 'InstanceUnknown', message: problem.message, afterMs };
    return { ...base, status, sends: ended.sends, ending, problems: [...(input.faults ?? []), problem] };
  }
  const forbidden = forbiddenCalls(deps, { name: input.name, status: ended.status, facts: facts.parts });
  const problems = [
    ...(input.faults ?? []),
    ...(facts.parts.problems ?? []),
    ...forbidden.map(({ problem }) => problem),
  ];
  const kept = keepInUse(ended.status, facts.parts, deps.ids);
  const decided = decideAll(deps, memory, { ...input, status: kept.status }, { ...facts.parts, problems });
  const held = decided.ending.kind === 'hold' ? heldUp(decided.ending) : [];
  // A reported refusal is checked again when it may be over, though no call waits for it.
  const waits = [waitMs, ...forbidden.map(({ afterMs }) => afterMs + 1)].filter((ms) => ms !== undefined);
  return {
    ...base,
    waitMs: waits.length === 0 ? undefined : Math.min(...waits),
    status: decided.status,
    sends: [...ended.sends, ...decided.sends],
    ending: decided.ending,
    ...(deps.claimsWait === undefined || facts.parts.claims === undefined
      ? {}
      : { claimWaits: waitsOf(decided.view, deps.leader) }),
    allocatable: decideAllocatable(decided.view, decided.status),
    putBack: kept.ips,
    problems: [...problems, ...held],
  };
}

function waitsOf(view: NodeView, leader: NodeDeps['leader']): ReadonlyMap<string, string> {
  return new Map([...claimWaitsOf(view, leader), ...directWaitsOf(view, leader)]);
}

/** Converts a block to problems. A running call is no problem: it is reported when it fails. */
function heldUp({ reason, message }: Pick<Hold, 'reason' | 'message'>): readonly NodeProblem[] {
  return reason === 'CallUnderWay' || reason === 'ClaimWaits' ? [] : [{ reason, message }];
}

/** Returns the resources that an unwritten plan took. */
export function abandonPlan(deps: NodeDeps, name: string, { sends, status }: Plan): void {
  for (const { intent } of sends) {
    countSubnet(deps, intent, status, -1);
    for (const key of keysOf(name, intent, status)) deps.breakers.endProbe(key, name);
  }
}

type Ended = {
  /** Recorded calls that must not be made. */
  readonly refused: readonly string[];
  readonly status: NodeEniConfigStatus;
  readonly finished: readonly string[];
  readonly sends: readonly Start[];
};

function applyOutcomes(deps: NodeDeps, memory: NodeMemory, input: TurnInput, answer: NodeFactsAnswer): Ended {
  const facts = answer.kind === 'known' ? answer.parts : undefined;
  const reserved = answer.kind === 'known' ? answer.parts.reservedIps : answer.reservedIps;
  const finished: string[] = [];
  const sends: Start[] = [];
  const refused: string[] = [];
  let { status } = input;
  for (const intent of input.status.intents ?? []) {
    const outcome = memory.calls.get(intent.id)?.outcome;
    if (outcome === undefined) continue;
    finished.push(intent.id);
    const taken = outcome === 'repeat' && facts !== undefined ? takenBy(intent, status, facts) : [];
    if (outcome === 'repeat' && taken.length > 0) {
      const message = `${intent.action} of ${intent.eniID ?? 'nothing'} would take ${taken.join(', ')} from live Pods`;
      status = finishIntent(status, intent, { kind: 'refused', error: { code: 'IN_USE', message } }, deps.ids);
      refused.push(message);
      continue;
    }
    if (outcome === 'repeat') {
      status = resendIntent(status, intent, deps.leader.epoch);
      const again = status.intents?.find((candidate) => candidate.id === intent.id) ?? intent;
      sends.push({ kind: 'send', intent: again, priority: 'warm' });
      countSubnet(deps, intent, status, 1);
      continue;
    }
    if (outcome.kind === 'unclear') memory.unclearMs.set(intent.id, deps.clock.monotonicMs());
    if (outcome.kind === 'refused' || outcome.kind === 'unclear') countSubnet(deps, intent, status, -1);
    status = finishIntent(status, intent, outcome, deps.ids, reserved);
  }
  return { status, finished, sends, refused };
}

/** Own calls of unknown outcome are resolved again with growing pauses. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

function unattended(
  { clock, leader }: NodeDeps,
  memory: NodeMemory,
  status: NodeEniConfigStatus,
  sends: readonly Start[],
): { readonly looks: readonly Start[]; readonly waitMs: number | undefined } {
  const nowMs = clock.monotonicMs();
  const sent = new Set(sends.map(({ intent }) => intent.id));
  const looks: Start[] = [];
  const waits: number[] = [];
  for (const intent of status.intents ?? []) {
    const isAttended = memory.calls.has(intent.id) && memory.calls.get(intent.id)?.outcome === undefined;
    if (isAttended || sent.has(intent.id)) continue;
    const firstSeenMs = memory.intentSeenMs.get(intent.id) ?? nowMs;
    const context = { ownEpoch: leader.epoch, firstSeenMs, nowMs, leaseMs: leader.term.leaseMs };
    const turn = decideIntentTurn(intent, context);
    const pauseMs = pauseOf(memory, intent, nowMs);
    if (turn.kind === 'wait' || pauseMs > 0) waits.push(Math.max(pauseMs, turn.kind === 'wait' ? turn.ms : 0));
    else looks.push({ kind: intent.phase === 'Accepted' ? 'follow' : 'resolve', intent, priority: 'warm' });
  }
  return { looks, waitMs: waits.length === 0 ? undefined : Math.min(...waits) };
}

function pauseOf(memory: NodeMemory, { id, tries = 0 }: Intent, nowMs: number): number {
  const sinceMs = memory.unclearMs.get(id);
  if (sinceMs === undefined) return 0;
  return Math.max(0, sinceMs + Math.min(FIRST_PAUSE_MS * 2 ** Math.min(tries, 10), LONGEST_PAUSE_MS) - nowMs);
}

type Decided = {
  readonly status: NodeEniConfigStatus;
  readonly sends: readonly Start[];
  readonly ending: Plan['ending'];
  /** As it is after everything that was started. */
  readonly view: NodeView;
};

/** Decides until no further call is to be started: all of it becomes one write. */
function decideAll(deps: NodeDeps, memory: NodeMemory, input: TurnInput, first: NodeFactParts): Decided {
  const { name } = input;
  const sends: Start[] = [];
  let { status } = input;
  const viewNow = (): NodeView =>
    buildView(deps, memory, { ...input, status, facts: { ...first, subnets: afterUse(first.subnets, sends) } });
  for (let step = 0; step < MOST_STEPS; step++) {
    const view = viewNow();
    const decision = decideNode(view, deps.leader, deps.ids);
    if (decision.kind !== 'begin' && decision.kind !== 'write') return { status, sends, ending: decision, view };
    ({ status } = decision);
    if (decision.kind === 'write') continue;
    const { intent, priority } = decision;
    const sourceNode = sourceNodeOf(view, intent);
    sends.push({ kind: 'send', intent, priority, ...(sourceNode === undefined ? {} : { sourceNode }) });
    countSubnet(deps, intent, status, 1);
    deps.memory.claimCalls.take(name, intent, status);
    for (const key of keysOf(name, intent, status)) deps.breakers.beginProbe(key, name);
  }
  return { status, sends, ending: { kind: 'idle' }, view: viewNow() };
}

function sourceNodeOf({ claims }: NodeView, { action, claim = '' }: Intent): string | undefined {
  return action === 'MigratePrivateIpAddress' ? claims?.get(claim)?.source?.nodeName : undefined;
}

/** Subtracts what this pass has taken so far from the subnets. */
function afterUse<T extends { readonly subnetId: string; readonly freeIps: number }>(
  subnets: readonly T[],
  sends: readonly Start[],
): readonly T[] {
  return subnets.map((subnet) => {
    const own = sends.filter(({ intent }) => intent.subnetID === subnet.subnetId);
    const taken = own.reduce((sum, { intent }) => sum + usedBy(intent), 0);
    return taken === 0 ? subnet : { ...subnet, freeIps: Math.max(0, subnet.freeIps - taken) };
  });
}

function countSubnet({ facts }: NodeDeps, intent: Intent, status: NodeEniConfigStatus, sign: 1 | -1): void {
  const used = usedBy(intent);
  const subnetId = intent.subnetID ?? status.eniInfos?.find((eni) => eni.eniID === intent.eniID)?.subnetID;
  if (used > 0 && subnetId !== undefined) facts.subnetUsed(subnetId, sign * used);
}

function usedBy(intent: Intent): number {
  const { action, ipCount = 0 } = intent;
  if (action === 'CreateNetworkInterface') return ipCount + 1;
  return action === 'AssignPrivateIpAddresses' ? askedOf(intent) : 0;
}

function keysOf(name: string, intent: Intent, status: NodeEniConfigStatus): readonly string[] {
  const { own, shared } = callKeysOf(name, intent, status);
  return [...own, ...shared.values()];
}
