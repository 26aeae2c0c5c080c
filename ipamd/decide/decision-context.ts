import type { Mutation } from '../../crd/intent.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { countSlots, type Slots } from './count-slots.ts';
import type { Answer, Blocked, BlockedReason, Intent } from './decision.ts';
import { type EniKind, KINDS } from './eni-kinds.ts';
import type { NodeView, Refusal } from './node-view.ts';
import { type ClaimPlacement, placeClaims } from './place-claims.ts';

/** What the parts of a decision read: the view, the status with the marks that this decision sets, and what is counted once. */
export type DecisionContext = {
  readonly view: NodeView;
  readonly status: NodeEniConfigStatus;
  readonly slots: ReadonlyMap<EniKind, Slots>;
  readonly claims: ClaimPlacement;
  /** ENIs that have a call in flight. */
  readonly busy: ReadonlySet<string>;
  /** A creation, attachment or detachment is in flight and not stuck. An instance accepts one of these at a time. */
  readonly isInstanceBusy: boolean;
};

/** Actions of which an instance accepts one at a time: each takes the instance's own lock in the cloud. */
const INSTANCE_ACTIONS: readonly Mutation[] = [
  'CreateNetworkInterface',
  'AttachNetworkInterface',
  'DetachNetworkInterface',
];

/** Builds the context of a decision: counts the node's slots and finds the ENIs that have a call in flight. */
export function buildDecisionContext(
  view: NodeView,
  status: NodeEniConfigStatus,
  kinds: readonly EniKind[] = Object.values(KINDS),
): DecisionContext {
  const intents = status.intents ?? [];
  const isStuck = (intent: Intent) => view.stuck.has(intent.id) || view.stuck.has(intent.eniID ?? '');
  const slots = new Map(kinds.map((kind) => [kind, countSlots(kind, view, status)]));
  return {
    view,
    status,
    slots,
    claims: placeClaims(view, status, slots.get(KINDS.shared)?.perEni ?? 0),
    busy: new Set(intents.flatMap(({ eniID, targetENIID }) => [eniID, targetENIID].filter((id) => id !== undefined))),
    isInstanceBusy: intents.some((intent) => INSTANCE_ACTIONS.includes(intent.action) && !isStuck(intent)),
  };
}

/** Returns the slots of a kind. */
export function slotsOf({ slots, view, status }: DecisionContext, kind: EniKind): Slots {
  return slots.get(kind) ?? countSlots(kind, view, status);
}

/**
 * Collects the answers of each part in turn, up to the first call. What follows the call is decided again once the call is on
 * record: it may no longer be needed, or possible.
 */
export function planInTurn(parts: readonly (() => readonly Answer[])[]): readonly Answer[] {
  const answers: Answer[] = [];
  for (const part of parts) {
    for (const answer of part()) {
      answers.push(answer);
      if (answer.kind === 'call') return answers;
    }
  }
  return answers;
}

/** Lists the answers that are no call. */
export function blocksIn(answers: readonly Answer[]): readonly BlockedAnswer[] {
  return answers.filter((answer) => answer.kind === 'blocked');
}

type BlockedAnswer = Extract<Answer, { readonly kind: 'blocked' }>;

/** Returns why a call is blocked, if one of the keys has an open breaker; else undefined. */
export function checkBreakers(
  { blocked, refusals }: Pick<NodeView, 'blocked' | 'refusals'>,
  keys: readonly string[],
  reason: BlockedReason,
  text: string,
): Blocked | undefined {
  const key = keys.find((candidate) => blocked.has(candidate));
  if (key === undefined) return undefined;
  const refusal = refusals?.get(key);
  const message = refusal === undefined || refusal.message === '' ? text : `${text}: ${refusal.message}`;
  return { kind: 'blocked', reason, message, ...requestIdOf(refusal), afterMs: refusal?.afterMs ?? RECHECK_MS };
}

/** Returns the RequestId of a refusal as the field of a block. */
export function requestIdOf(refusal: Refusal | undefined): Pick<Blocked, 'requestId'> {
  return refusal?.requestId === undefined ? {} : { requestId: refusal.requestId };
}

/** Result of a part that waits for another of ipamd's own calls. */
export const CALL_IN_FLIGHT: Blocked = {
  kind: 'blocked',
  reason: 'CallUnderWay',
  message: 'a call to the cloud is under way',
  afterMs: 5_000,
};

/** When to check again if the end of the block is not known, milliseconds. */
export const RECHECK_MS = 30_000;
