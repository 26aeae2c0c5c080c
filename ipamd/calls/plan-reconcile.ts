import type { CallPriority } from '../../cloud/cloud.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import { requestedIpCount } from '../decide/count-slots.ts';
import { type Allocatable, decideAllocatable } from '../decide/decide-allocatable.ts';
import { decideIntentResolution } from '../decide/decide-intent-resolution.ts';
import { decideNode } from '../decide/decide-node.ts';
import type { Blocked, ClaimWait, Decision, Intent } from '../decide/decision.ts';
import { CALL_IN_FLIGHT } from '../decide/decision-context.ts';
import { finishIntent, resendIntent } from '../decide/finish-intent.ts';
import { withCondition } from '../decide/node-conditions.ts';
import type { NodeFactValues, NodeProblem, NodeView } from '../decide/node-view.ts';
import { podIpsRemovedBy, revertForeignMarks } from '../decide/revert-foreign-marks.ts';
import { buildView, forbiddenCalls } from './build-view.ts';
import { callKeysOf } from './call-keys.ts';
import type { NodeDeps, NodeFactsAnswer } from './node-deps.ts';
import { type CallKind, type NodeMemory, noteUnclear, sinceMsOf } from './node-memory.ts';
import type { ReconcileInput } from './read-input.ts';

/** A call, or the resolution of one, that is started for an intent. */
type CallStart = {
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
  readonly sends: readonly CallStart[];
  /** Started at once: they change nothing. */
  readonly followUps: readonly CallStart[];
  readonly ending: Exclude<Decision, { readonly kind: 'begin' | 'write' }> | Renewal;
  readonly problems: readonly NodeProblem[];
  /** Addresses of Pods that another client had marked for removal in the object; in use again in the status. */
  readonly restoredIps?: readonly string[];
  /** Recorded calls that another client wrote; removed without being made. */
  readonly refused?: readonly string[];
  /** Why claims whose Pods are here wait, by key; undefined when unknown. */
  readonly claimWaits?: ReadonlyMap<string, ClaimWait>;
  /** How many addresses the node can have; undefined when unknown. */
  readonly allocatable?: Allocatable | undefined;
  /** Milliseconds until an intent may be resolved. */
  readonly waitMs: number | undefined;
};

/** No call is on record and every ENI is on the instance: the object may be let go, and is made again. */
type Renewal = { readonly kind: 'renewed' };

/** More claim marks and calls than one pass can lead to. */
const MAX_STEPS = 64;

/**
 * Plans a node's next write: the outcomes of ended calls, then everything that is decided on top of them, in one
 * status. Does not wait for anything, so that the resources that it takes (addresses of subnets, probes of breakers)
 * and its decisions belong to one moment.
 */
export function planReconcile(deps: NodeDeps, memory: NodeMemory, input: ReconcileInput, facts: NodeFactsAnswer): Plan {
  const ended = applyOutcomes(deps, memory, input, facts);
  const { followUps, waitMs } = planFollowUps(deps, memory, ended.status, ended.sends);
  const base = { finished: ended.finished, refused: ended.refused, followUps, waitMs };
  if (facts.kind === 'unknown') {
    const { problem, afterMs } = facts;
    const condition = { type: 'Ready', status: 'False' as const, reason: problem.reason, message: problem.message };
    const status = withCondition(ended.status, condition, deps.ids);
    const ending: Plan['ending'] = { kind: 'blocked', reason: 'InstanceUnknown', message: problem.message, afterMs };
    return { ...base, status, sends: ended.sends, ending, problems: [...input.faults, problem] };
  }
  if (facts.values.isRenewed === true) {
    const ending = renewalOf(ended.status);
    if (ending !== undefined)
      return { ...base, status: ended.status, sends: ended.sends, ending, problems: input.faults };
  }
  const forbidden = forbiddenCalls(deps, { ...input, status: ended.status }, facts.values);
  const problems = [...input.faults, ...(facts.values.problems ?? []), ...forbidden.map(({ problem }) => problem)];
  const restored = revertForeignMarks(ended.status, facts.values, deps.ids);
  const decided = decideAll(deps, memory, { ...input, status: restored.status }, { ...facts.values, problems });
  const blocked = decided.ending.kind === 'blocked' ? blockedProblems(decided.ending) : [];
  // A reported refusal is checked again when it may be over, though no call waits for it.
  const waits = [waitMs, ...forbidden.map(({ afterMs }) => afterMs + 1)].filter((ms) => ms !== undefined);
  return {
    ...base,
    waitMs: waits.length === 0 ? undefined : Math.min(...waits),
    status: decided.status,
    sends: [...ended.sends, ...decided.sends],
    ending: decided.ending,
    ...waitsOf(decided.ending, facts.values),
    allocatable: decideAllocatable(decided.view, decided.status),
    restoredIps: restored.ips,
    problems: [...problems, ...blocked],
  };
}

/**
 * Returns how a pass ends for an object that is to be let go. Calls end first, and no other is started. Undefined when an
 * ENI is neither on the instance nor gone: its next object could not find it, so that its calls are decided as ever.
 */
function renewalOf({ eniInfos = [], intents = [] }: NodeEniConfigStatus): Plan['ending'] | undefined {
  if (intents.length > 0) return CALL_IN_FLIGHT;
  return eniInfos.every(({ state }) => state === 'Attached') ? { kind: 'renewed' } : undefined;
}

function waitsOf(ending: Plan['ending'], { claims }: NodeFactValues): Pick<Plan, 'claimWaits'> {
  const waits = 'waits' in ending ? ending.waits : undefined;
  return claims === undefined || waits === undefined ? {} : { claimWaits: waits };
}

/** Converts a block to problems. A running call is no problem: it is reported when it fails. */
function blockedProblems({
  reason,
  message,
  requestId,
}: Pick<Blocked, 'reason' | 'message' | 'requestId'>): readonly NodeProblem[] {
  if (reason === 'CallUnderWay' || reason === 'ClaimWaits' || reason === 'NodeFull') return [];
  return [{ reason, message, ...(requestId === undefined ? {} : { requestId }) }];
}

/** Returns the resources that an unwritten plan took. */
export function abandonPlan(deps: NodeDeps, name: string, { sends, status }: Plan): void {
  for (const { intent } of sends) {
    countSubnet(deps, intent, status, -1);
    for (const key of keysOf(name, intent, status)) deps.breakers.endProbe(key, name);
  }
}

/** Puts the outcomes of ended calls into the status. */
function applyOutcomes(
  deps: NodeDeps,
  memory: NodeMemory,
  input: ReconcileInput,
  answer: NodeFactsAnswer,
): Pick<Plan, 'status' | 'finished' | 'sends'> & { readonly refused: readonly string[] } {
  const facts = answer.kind === 'known' ? answer.values : undefined;
  const reserved = answer.kind === 'known' ? answer.values.reservedIps : answer.reservedIps;
  const finished: string[] = [];
  const sends: CallStart[] = [];
  const refused: string[] = [];
  let { status } = input;
  for (const intent of input.status.intents ?? []) {
    const call = memory.calls.get(intent.id);
    const outcome = call?.outcome;
    if (call === undefined || outcome === undefined) continue;
    finished.push(intent.id);
    const taken = outcome === 'repeat' && facts !== undefined ? podIpsRemovedBy(intent, status, facts) : [];
    if (outcome === 'repeat' && taken.length > 0) {
      const message = `${intent.action} of ${intent.eniID ?? 'nothing'} would take ${taken.join(', ')} from live Pods`;
      status = finishIntent(status, intent, { kind: 'refused', error: { code: 'IN_USE', message } }, deps.ids);
      refused.push(message);
      continue;
    }
    if (outcome === 'repeat') {
      status = resendIntent(status, intent, deps.leader.epoch);
      const resent = status.intents?.find((candidate) => candidate.id === intent.id) ?? intent;
      sends.push({ kind: 'send', intent: resent, priority: 'warm' });
      countSubnet(deps, intent, status, 1);
      continue;
    }
    if (outcome.kind === 'unclear') noteUnclear(memory, intent.id, call, deps.clock.monotonicMs());
    if (outcome.kind === 'refused' || outcome.kind === 'unclear') countSubnet(deps, intent, status, -1);
    status = finishIntent(status, intent, outcome, deps.ids, reserved);
  }
  return { status, finished, sends, refused };
}

/** Own calls of unknown outcome are resolved again with growing pauses. */
const PAUSE: BackoffSettings = { firstMs: 1_000, maxMs: 30_000, factor: 2, jitter: 0 };

function planFollowUps(
  { clock, leader }: NodeDeps,
  memory: NodeMemory,
  status: NodeEniConfigStatus,
  sends: readonly CallStart[],
): { readonly followUps: readonly CallStart[]; readonly waitMs: number | undefined } {
  const nowMs = clock.monotonicMs();
  const sent = new Set(sends.map(({ intent }) => intent.id));
  const followUps: CallStart[] = [];
  const waits: number[] = [];
  for (const intent of status.intents ?? []) {
    const isAttended = memory.calls.has(intent.id) && memory.calls.get(intent.id)?.outcome === undefined;
    if (isAttended || sent.has(intent.id)) continue;
    const firstSeenMs = sinceMsOf(memory, intent.id) ?? nowMs;
    const context = { ownEpoch: leader.epoch, firstSeenMs, nowMs, leaseMs: leader.term.leaseMs };
    const step = decideIntentResolution(intent, context);
    const pauseMs = pauseOf(memory, intent, nowMs);
    if (step.kind === 'wait' || pauseMs > 0) waits.push(Math.max(pauseMs, step.kind === 'wait' ? step.ms : 0));
    else followUps.push({ kind: intent.phase === 'Accepted' ? 'follow' : 'resolve', intent, priority: 'warm' });
  }
  return { followUps, waitMs: waits.length === 0 ? undefined : Math.min(...waits) };
}

function pauseOf({ unclear }: NodeMemory, { id }: Intent, nowMs: number): number {
  const before = unclear.get(id);
  return before === undefined ? 0 : Math.max(0, before.lastMs + backoffMs(PAUSE, before.times, 0) - nowMs);
}

/**
 * Decides until no further call is to be started: all of it becomes one write. Returns the view as it is after everything
 * that was started, too.
 */
function decideAll(
  deps: NodeDeps,
  memory: NodeMemory,
  input: ReconcileInput,
  facts: NodeFactValues,
): Pick<Plan, 'status' | 'sends' | 'ending'> & { readonly view: NodeView } {
  const { name } = input;
  const sends: CallStart[] = [];
  let { status } = input;
  const viewNow = (): NodeView =>
    buildView(deps, memory, { ...input, status }, { ...facts, subnets: subtractUsed(facts.subnets, sends) });
  for (let step = 0; step < MAX_STEPS; step++) {
    const view = viewNow();
    const decision = decideNode(view, deps.leader, deps.ids);
    if (decision.kind !== 'begin' && decision.kind !== 'write') return { status, sends, ending: decision, view };
    ({ status } = decision);
    if (decision.kind === 'write') continue;
    const { intent, priority } = decision;
    const sourceNode = sourceNodeOf(view, intent);
    sends.push({ kind: 'send', intent, priority, ...(sourceNode === undefined ? {} : { sourceNode }) });
    countSubnet(deps, intent, status, 1);
    deps.memory.claimCalls.add(name, intent, status);
    for (const key of keysOf(name, intent, status)) deps.breakers.beginProbe(key, name);
  }
  return { status, sends, ending: { kind: 'idle' }, view: viewNow() };
}

function sourceNodeOf({ claims }: NodeView, { action, claim = '' }: Intent): string | undefined {
  return action === 'MigratePrivateIpAddress' ? claims?.get(claim)?.source?.nodeName : undefined;
}

/** Subtracts what this pass has taken so far from the subnets. */
function subtractUsed<T extends { readonly subnetId: string; readonly freeIps: number }>(
  subnets: readonly T[],
  sends: readonly CallStart[],
): readonly T[] {
  return subnets.map((subnet) => {
    const ownSends = sends.filter(({ intent }) => intent.subnetID === subnet.subnetId);
    const taken = ownSends.reduce((sum, { intent }) => sum + usedBy(intent), 0);
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
  return action === 'AssignPrivateIpAddresses' ? requestedIpCount(intent) : 0;
}

function keysOf(name: string, intent: Intent, status: NodeEniConfigStatus): readonly string[] {
  const { own, shared } = callKeysOf(name, intent, status);
  return [...own, ...shared.values()];
}
