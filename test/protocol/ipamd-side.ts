import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { decideIntentResolution } from '../../ipamd/decide/decide-intent-resolution.ts';
import { decideNode } from '../../ipamd/decide/decide-node.ts';
import type { CloudSnapshot, Ids, Intent, IntentOutcome, Leader } from '../../ipamd/decide/decision.ts';
import { evaluateDrift } from '../../ipamd/decide/evaluate-drift.ts';
import { evaluateIntent } from '../../ipamd/decide/evaluate-intent.ts';
import { finishIntent, resendIntent } from '../../ipamd/decide/finish-intent.ts';
import type { NodeView } from '../../ipamd/decide/node-view.ts';
import { rebuildStatus } from '../../ipamd/decide/rebuild-status.ts';
import { baselineOf, withConfirmedOffers } from '../../ipamd/decide/with-confirmed-offers.ts';
import { CLOUD_LIMITS, type CloudAnswer, effectsOf, freeIps, INSTANCE_ID, SUBNET_ID, sightOf } from './cloud-truth.ts';
import type { Move } from './explore.ts';
import { type Call, type Nec, type Setting, type World, withNec } from './world.ts';

const LEASE_MS = 15_000;
/** Longer than any wait of the protocol. */
const LONG_MS = 1e9;

/**
 * Lists what ipamd and its calls may do. A decision and its write are one step: a guarded write on an older object is
 * refused and changes nothing, so only those on the object as it is matter. Without the guard they are two.
 */
export function ipamdMoves(world: World, setting: Setting): readonly Move<World>[] {
  return [...nodeMoves(world, setting), ...crash(world)];
}

/** Lists what happens for one node while its leader lives. */
export function nodeMoves(world: World, setting: Setting): readonly Move<World>[] {
  const calls = world.calls.flatMap((_, i) => landCall(world, setting, i));
  const moves = [...calls, ...ownMoves(world, setting)];
  return world.calls.length === 0 ? moves : moves.map((move) => ({ ...move, next: withoutSpent(move.next) }));
}

function ownMoves(world: World, setting: Setting): readonly Move<World>[] {
  const { write, epoch, baseline } = world.ipamd;
  if (write === undefined) {
    return [...hear(world, setting), ...resolve(world, setting), ...look(world, setting), ...audit(world, setting)];
  }
  const landed = withCall({ ...world, nec: write.next, ipamd: { epoch, baseline } }, write.call);
  return [{ label: "kube: ipamd's write lands", next: landed, isFair: true }];
}

/** Drops late calls that cannot change anything any more: answered before by their token, or for an ENI that is gone. */
function withoutSpent(world: World): World {
  const { cloud } = world;
  const isSpent = ({ isHeard, intent: { clientToken, eniID } }: Call): boolean =>
    !isHeard &&
    ((clientToken !== undefined && cloud.answers.has(clientToken)) ||
      (eniID !== undefined && !cloud.enis.some(({ eniId }) => eniId === eniID)));
  return world.calls.some(isSpent) ? { ...world, calls: world.calls.filter((call) => !isSpent(call)) } : world;
}

/** A step under construction: ids are taken from a counter that goes into the next world. */
class Turn {
  readonly world: World;
  readonly setting: Setting;
  #nextId: number;
  readonly ids: Ids = {
    next: () => idOf(this.#nextId++),
    now: () => '2024-01-01T00:00:00Z',
  };

  constructor(world: World, setting: Setting) {
    this.world = world;
    this.setting = setting;
    this.#nextId = world.nextId;
  }

  /** Spec and status as ipamd goes by them. Without intents on record it knows of its own calls from memory alone. */
  get read(): { readonly spec: NodeEniConfigSpec; readonly status: NodeEniConfigStatus } {
    const { calls, nec, ipamd } = this.world;
    const { spec, status } = withConfirmedOffers(nec.spec, nec.status, ipamd.baseline);
    if (this.setting.planted !== 'no-intent') return { spec, status };
    const intents = calls.filter(({ isHeard }) => isHeard).map(({ intent }) => intent);
    return { spec, status: { ...status, intents } };
  }

  /** True when the agent has seen a later state of the object: it was restored, and nothing is decided on it. */
  get isOld(): boolean {
    const { spec, status } = this.world.nec;
    return this.setting.planted !== 'no-epoch' && (spec.observedSupplyEpoch ?? 0) > (status.supplyEpoch ?? 0);
  }

  get sight(): CloudSnapshot {
    return sightOf(this.world.cloud, this.setting.instanceId);
  }

  get leader(): Leader {
    return { epoch: this.world.ipamd.epoch, clusterId: 'cls-1', requestTimeoutSeconds: 60 };
  }

  /** Decides on a status; returns the worlds after the one write that puts in force what came of it. */
  decide(status: NodeEniConfigStatus, label: string, mustWrite: boolean, refused?: Intent): readonly Move<World>[] {
    const { spec } = this.read;
    const isBlind = this.setting.planted === 'no-epoch';
    const seen = isBlind ? { ...spec, observedSupplyEpoch: 0 } : spec;
    const bare = viewOf(this.world, seen, status, this.setting);
    const view = this.setting.also?.(bare) ?? bare;
    // What the cloud refused rests for a while: a look comes first, or the audit.
    const blocked = new Set([...view.blocked, ...(refused === undefined ? [] : keysOf(refused))]);
    const decision = decideNode({ ...view, blocked }, this.leader, this.ids);
    switch (decision.kind) {
      case 'begin':
        return this.write(decision.status, `${label}; ${words(decision.intent)}`, decision.intent);
      case 'write':
        return this.write(decision.status, label);
      default:
        return mustWrite || status !== this.world.nec.status ? this.write(status, label) : [];
    }
  }

  /** One guarded write, then the call of its intent. A fault may hide from ipamd that the write was done. */
  write(status: NodeEniConfigStatus, label: string, call?: Intent): readonly Move<World>[] {
    const { world, setting } = this;
    const recorded = setting.planted === 'no-intent' ? { ...status, intents: [] } : status;
    const nec: Nec = { ...world.nec, status: recorded };
    const base = { ...world, nextId: this.#nextId };
    if (setting.planted === 'no-guard') {
      const write = { next: nec, ...(call === undefined ? {} : { call }) };
      return [
        { label: `ipamd: ${label} (write sent)`, next: { ...base, ipamd: { ...world.ipamd, write } }, isFair: true },
      ];
    }
    const written = withNec(base, nec, true);
    const moves: Move<World>[] = [{ label: `ipamd: ${label}`, next: withCall(written, call), isFair: true }];
    if (call !== undefined && world.left.faults > 0) {
      const deaf = { ...written, left: { ...world.left, faults: world.left.faults - 1 } };
      moves.push({ label: `FAULT: ipamd: ${label}; never hears that it is written`, next: deaf, isFair: false });
    }
    return moves;
  }
}

function keysOf({ action, eniID, claim }: Intent): readonly string[] {
  const ofClaim = claim === undefined ? [] : [`claim/${claim}`];
  return [`call/${action}`, `call/${action}/${eniID ?? ''}`, ...ofClaim];
}

function idOf(number: number): string {
  return number.toString(16).padStart(16, '0');
}

function words({ action, eniID, ips, ipCount }: Intent): string {
  const short = action.replace('NetworkInterface', '').replace('PrivateIpAddresses', '');
  const about = [eniID, ips?.join(' '), ipCount === undefined ? undefined : `${ipCount} addresses`];
  return `calls ${short}${about.map((part) => (part === undefined ? '' : ` ${part}`)).join('')}`;
}

function viewOf({ cloud }: World, spec: NodeEniConfigSpec, status: NodeEniConfigStatus, setting: Setting): NodeView {
  const { ips } = setting;
  return {
    nodeName: 'node-1',
    uid: 'uid-1',
    spec,
    status,
    leaving: 'no',
    instance: {
      instanceId: setting.instanceId ?? INSTANCE_ID,
      instanceType: 'S5.SMALL1',
      zone: 'ap-guangzhou-3',
      vpcId: 'vpc-1',
      isRunning: true,
      secondaryEnis: CLOUD_LIMITS.enis,
      secondaryIpsPerEni: CLOUD_LIMITS.ipsPerEni,
    },
    maxRouteENI: undefined,
    maxIPPerENI: undefined,
    floor: 0,
    initialDemand: 0,
    // As it is now: what a stale number leads to is a refusal, which changes nothing.
    subnets: [{ subnetId: SUBNET_ID, cidr: '10.0.0.0/16', freeIps: freeCount(cloud, ips), isBlocked: false }],
    securityGroups: undefined,
    // The quota of the VPC: it keeps the world small.
    blocked: new Set((status.eniInfos ?? []).length >= CLOUD_LIMITS.enis ? ['vpc-enis'] : []),
    stuck: new Set(),
  };
}

/** The ENIs that are not there yet have each a place of their own address kept. */
function freeCount(cloud: World['cloud'], ips: readonly string[]): number {
  return freeIps(cloud, ips).length + Math.max(0, CLOUD_LIMITS.enis - cloud.enis.length);
}

function withCall(world: World, intent: Intent | undefined): World {
  return intent === undefined ? world : { ...world, calls: [...world.calls, { intent, isHeard: true }] };
}

function withoutCall(world: World, index: number): World {
  return { ...world, calls: world.calls.filter((_, i) => i !== index) };
}

/** A call reaches the cloud: now or late; is lost, is done twice, or its answer is lost. */
function landCall(world: World, setting: Setting, index: number): readonly Move<World>[] {
  const call = world.calls[index];
  if (call === undefined || call.answer !== undefined) return [];
  const { intent, isHeard } = call;
  const { left } = world;
  const moves: Move<World>[] = [];
  const less = { ...left, faults: left.faults - 1 };
  const whose = `${isHeard ? '' : 'given up, '}${words(intent).slice('calls '.length)}`;
  for (const { cloud, answer, words: result } of effectsOf(world.cloud, intent, setting.ips)) {
    const landed = { ...withoutCall(world, index), cloud };
    if (!isHeard) moves.push({ label: `cloud: ${whose}: ${result}`, next: landed, isFair: true });
    else if (isRelease(intent)) {
      moves.push({
        label: `cloud: ${whose}: ${result}`,
        next: withAnswer({ ...world, cloud }, index, answer),
        isFair: true,
      });
    } else {
      const turn = new Turn(landed, setting);
      const outcome = outcomeOf(answer, intent, turn);
      moves.push(...settle(turn, intent, outcome, `hears from the cloud: ${whose}: ${result}`));
      if (answer.kind === 'refused' && left.faults > 0) moves.push(...twice(setting, landed, intent, whose));
    }
    if (isHeard && left.faults > 0) {
      moves.push(...unheard(setting, { ...landed, left: less }, intent, `${whose}: ${result}; the answer is lost`));
    }
  }
  if (left.faults === 0) return moves;
  const lost = { ...withoutCall(world, index), left: less };
  if (!isHeard) return [...moves, { label: `FAULT: ${whose}: lost`, next: lost, isFair: false }];
  moves.push(...unheard(setting, lost, intent, `${whose}: lost`));
  const delayed = {
    ...world,
    left: less,
    calls: world.calls.map((other, i) => (i === index ? { ...other, isHeard: false } : other)),
  };
  moves.push(...unheard(setting, delayed, intent, `${whose}: given up, and still on its way`));
  return moves;
}

/**
 * A release shows to others before its sender hears of it: its addresses may be given again. What takes, shows to nobody
 * but sweeps, which leave alone what an intent is on record for; so its effect and its answer are one step, and a crash or
 * a loss between the two is one of a call that arrives later.
 */
function isRelease({ action }: Intent): boolean {
  return action === 'UnassignPrivateIpAddresses' || action === 'DeleteNetworkInterface';
}

/**
 * A call that was sent twice, and one of the two refused: the other may do it all the same. (Where the first is done, the
 * second is answered by the token, and nothing comes of it. Without a token nothing is sent twice.)
 */
function twice(setting: Setting, refused: World, intent: Intent, whose: string): readonly Move<World>[] {
  const { left, calls } = refused;
  const less = { ...left, faults: left.faults - 1 };
  const turn = new Turn({ ...refused, left: less, calls: [...calls, { intent, isHeard: false }] }, setting);
  const outcome: IntentOutcome = { kind: 'refused', error: { code: 'REFUSED', message: 'refused' } };
  const moves = settle(turn, intent, outcome, `FAULT: ${whose}: sent twice, one refused`);
  return moves.map((move) => ({ ...move, isFair: false }));
}

function withAnswer(world: World, index: number, answer: CloudAnswer): World {
  return { ...world, calls: world.calls.map((call, i) => (i === index ? { ...call, answer } : call)) };
}

/** The sender hears nothing and gives up: it marks the intent as unclear. */
function unheard(setting: Setting, world: World, intent: Intent, label: string): readonly Move<World>[] {
  const outcome: IntentOutcome = { kind: 'unclear', error: { code: 'TIMEOUT', message: 'no answer' } };
  const turn = new Turn(world, setting);
  if (setting.planted === 'no-intent') return [{ label: `FAULT: ${label}`, next: world, isFair: false }];
  return settle(turn, intent, outcome, `FAULT: ${label}`).map((move) => ({ ...move, isFair: false }));
}

function hear(world: World, setting: Setting): readonly Move<World>[] {
  return world.calls.flatMap((call, index) => {
    if (call.answer === undefined || !call.isHeard) return [];
    const turn = new Turn(withoutCall(world, index), setting);
    return settle(
      turn,
      call.intent,
      outcomeOf(call.answer, call.intent, turn),
      `hears of ${words(call.intent).slice('calls '.length)}`,
    );
  });
}

/** Refusals for want of room: nothing happened, and nothing is learnt about the ENI. */
const QUOTA = ['LimitExceeded', 'InvalidParameterValue.LimitExceeded', 'ResourceInsufficient.Subnet'];

/** What the executor makes of the cloud's answer: an ENI in another state than was believed is looked at. */
function outcomeOf(answer: CloudAnswer, intent: Intent, turn: Turn): IntentOutcome {
  if (answer.kind === 'done') return { kind: 'done', result: answer.result };
  const refused: IntentOutcome = { kind: 'refused', error: { code: answer.code, message: answer.code } };
  if (QUOTA.includes(answer.code) || intent.action === 'CreateNetworkInterface') return refused;
  const judged = evaluateIntent(intent, turn.sight, turn.read.status);
  return judged === 'repeat' ? refused : judged;
}

/** One write that brings the outcome and what is next. */
function settle(turn: Turn, intent: Intent, outcome: IntentOutcome, label: string): readonly Move<World>[] {
  const { status } = turn.read;
  const isOnRecord = (status.intents ?? []).some(({ id }) => id === intent.id);
  if (turn.isOld || (!isOnRecord && turn.setting.planted !== 'no-intent')) {
    return [{ label: `${label}; knows of no such intent`, next: turn.world, isFair: true }];
  }
  const known = isOnRecord ? status : { ...status, intents: [...(status.intents ?? []), intent] };
  const finished = finishIntent(known, intent, outcome, turn.ids, turn.setting.reserved);
  return turn.decide(finished, label, true, outcome.kind === 'refused' ? intent : undefined);
}

/** Looks at intents whose call this process does not wait for: what became of it? */
function resolve(world: World, setting: Setting): readonly Move<World>[] {
  if (new Turn(world, setting).isOld) return [];
  return (world.nec.status.intents ?? []).flatMap((intent): readonly Move<World>[] => {
    const ours = world.calls.filter((call) => call.intent.id === intent.id);
    if (ours.some(({ isHeard }) => isHeard)) return [];
    const context = { ownEpoch: world.ipamd.epoch, firstSeenMs: 0, leaseMs: LEASE_MS };
    const mustWait = decideIntentResolution(intent, { ...context, nowMs: 0 }).kind === 'wait';
    // The assumption of the whole: a call takes effect before lease and request timeout are over, or never.
    if (mustWait && ours.length > 0) return [];
    if (decideIntentResolution(intent, { ...context, nowMs: LONG_MS }).kind === 'wait') return [];
    const turn = new Turn(world, setting);
    const judged = evaluateIntent(intent, turn.sight, turn.read.status);
    const label = `describes what became of ${words(intent).slice('calls '.length)}`;
    if (judged === 'repeat') {
      const again = resendIntent(turn.read.status, intent, world.ipamd.epoch);
      return turn.write(
        again,
        `${label}; sends it again`,
        again.intents?.find(({ id }) => id === intent.id),
      );
    }
    return settle(turn, intent, judged, `${label}: ${judged.kind}`);
  });
}

function look(world: World, setting: Setting): readonly Move<World>[] {
  const turn = new Turn(world, setting);
  return turn.isOld ? rebuild(turn) : turn.decide(turn.read.status, 'looks', false);
}

/** Makes the status again, once no call of its own is under way, and what a former leader sent was waited out. */
function rebuild(turn: Turn): readonly Move<World>[] {
  const { calls, ipamd, nec } = turn.world;
  if (calls.some(({ isHeard, intent }) => isHeard || intent.leaderEpoch !== ipamd.epoch)) return [];
  const rebuilt = rebuildStatus(nec.status, nec.spec, turn.sight, turn.ids);
  return turn.write(rebuilt, 'makes the restored object again from the cloud');
}

/** The audit that comes by now and then. What one look showed and a later one shows again is mended. */
function audit(world: World, setting: Setting): readonly Move<World>[] {
  const turn = new Turn(world, setting);
  if (turn.isOld) return [];
  const drift = evaluateDrift(turn.read.status, turn.sight);
  if (drift.length === 0) return [];
  const rebuilt = rebuildStatus(turn.read.status, turn.read.spec, turn.sight, turn.ids, undefined, setting.reserved);
  const named = drift.map(({ kind, eniID, ip }) => [kind, eniID, ip].filter(Boolean).join(' ')).join(', ');
  return turn.write(rebuilt, `finds ${named}`);
}

/**
 * The leader dies and another takes its place. Its calls stay on their way; those that it was about to make may never
 * have been sent.
 */
function crash(world: World): readonly Move<World>[] {
  const { left } = world;
  if (left.crashes === 0) return [];
  const unsent = world.calls.filter((call) => call.isHeard && call.answer === undefined);
  const variants: readonly (readonly Call[])[] = unsent.length === 0 ? [[]] : [[], unsent.slice(-1)];
  return variants.map((never) => ({
    label: `CRASH: ipamd has another leader${never.map(({ intent }) => `; ${words(intent)} was never sent`).join('')}`,
    next: {
      ...world,
      // What a dead leader wrote may land late; it calls nobody any more.
      ipamd: {
        epoch: world.ipamd.epoch + 1,
        baseline: baselineOf(world.nec.spec, world.nec.status, world.ipamd.epoch + 1),
        ...(world.ipamd.write ? { write: { next: world.ipamd.write.next } } : {}),
      },
      left: { ...left, crashes: left.crashes - 1 },
      calls: world.calls
        .filter((call) => call.answer === undefined && !never.includes(call))
        .map((call) => ({ ...call, isHeard: false })),
    },
    isFair: false,
  }));
}
