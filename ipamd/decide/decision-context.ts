import type { CallPriority } from '../../cloud/cloud.ts';
import { CLUSTER_TAG, ENI_TAG } from '../../crd/cloud-tags.ts';
import { MUTATIONS, type Mutation } from '../../crd/intent.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type AddressCounts, countAddresses, isShortForPods } from './address-counts.ts';
import type { Begin, Blocked, BlockedReason, Ids, Intent, Leader } from './decision.ts';
import type { NodeView, Refusal } from './node-view.ts';
import { type ClaimPlacement, placeClaims } from './place-claims.ts';

/** What the parts of a decision read: the view, and the status with the claim marks that this decision sets. */
export type DecisionContext = {
  readonly view: NodeView;
  readonly status: NodeEniConfigStatus;
  readonly supply: AddressCounts;
  readonly claims: ClaimPlacement;
  readonly leader: Leader;
  readonly ids: Ids;
  /** ENIs that have a call in flight. */
  readonly busy: ReadonlySet<string>;
  /** A creation, attachment or detachment is in flight and not stuck. An instance accepts one of these at a time. */
  readonly isInstanceBusy: boolean;
};

/** Result of one part of a decision; undefined when nothing is to be done. */
export type Step = Begin | Blocked | undefined;

/** Actions of which an instance accepts one at a time: each takes the instance's own lock in the cloud. */
const INSTANCE_ACTIONS: readonly Mutation[] = [
  'CreateNetworkInterface',
  'AttachNetworkInterface',
  'DetachNetworkInterface',
];

/** Builds the context of a decision: counts the node's supply and finds the ENIs that have a call in flight. */
export function buildDecisionContext(
  view: NodeView,
  status: NodeEniConfigStatus,
  leader: Leader,
  ids: Ids,
): DecisionContext {
  const intents = status.intents ?? [];
  const isStuck = (intent: Intent) => view.stuck.has(intent.id) || view.stuck.has(intent.eniID ?? '');
  const supply = countAddresses(view, status);
  return {
    view,
    status,
    supply,
    claims: placeClaims(view, status, supply.perEni),
    leader,
    ids,
    busy: new Set(intents.flatMap(({ eniID, targetENIID }) => [eniID, targetENIID].filter((id) => id !== undefined))),
    isInstanceBusy: intents.some((intent) => INSTANCE_ACTIONS.includes(intent.action) && !isStuck(intent)),
  };
}

/** Starts a call: returns the intent with a new id, and the status that records the intent. Takes ids. */
export function beginCall(
  context: DecisionContext,
  action: Mutation,
  fields: Partial<Intent>,
  status: NodeEniConfigStatus = context.status,
): Step {
  const id = context.ids.next();
  const intent: Intent = {
    ...fields,
    id,
    action,
    phase: 'Recorded',
    leaderEpoch: context.leader.epoch,
    ...(MUTATIONS[action].takesClientToken ? { clientToken: id } : {}),
    ...(action === 'CreateNetworkInterface' ? creationFieldsOf(context, id, fields.tags) : {}),
    requestTimeoutSeconds: context.leader.requestTimeoutSeconds,
    recordedAt: context.ids.now(),
  };
  const next = { ...status, intents: [...(status.intents ?? []), intent] };
  return { kind: 'begin', status: next, intent, priority: priorityOf(context, action) };
}

/** Returns why a call is blocked, if one of the keys has an open breaker; else undefined. */
export function checkBreakers(
  context: DecisionContext,
  keys: readonly string[],
  reason: BlockedReason,
  text: string,
): Blocked | undefined {
  const key = keys.find((candidate) => context.view.blocked.has(candidate));
  if (key === undefined) return undefined;
  const refusal = context.view.refusals?.get(key);
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

const MAX_NAME_LENGTH = 60;
/**
 * Longest value of a tag, characters.
 * @see https://cloud.tencent.com/document/product/651/13354 (limits of tags)
 */
const MAX_TAG_LENGTH = 127;

/** Returns name and tags of a new ENI. They identify the ENI when the answer with its id was lost. */
function creationFieldsOf(
  { view, leader }: DecisionContext,
  id: string,
  more: Intent['tags'],
): Pick<Intent, 'resourceName' | 'tags'> {
  return {
    resourceName: `tke-${leader.clusterId}`.slice(0, MAX_NAME_LENGTH - id.length - 1).concat('-', id),
    tags: {
      [CLUSTER_TAG]: leader.clusterId,
      [ENI_TAG.created]: 'true',
      [ENI_TAG.node]: view.nodeName.slice(0, MAX_TAG_LENGTH),
      [ENI_TAG.uid]: view.uid,
      ...more,
    },
  };
}

function priorityOf({ view, supply }: DecisionContext, action: Mutation): CallPriority {
  switch (action) {
    case 'DetachNetworkInterface':
    case 'DeleteNetworkInterface':
    case 'UnassignPrivateIpAddresses':
      return 'gc';
    default:
      return isShortForPods(view, supply) ? 'pod' : 'warm';
  }
}
