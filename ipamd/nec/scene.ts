import type { CallPriority } from '../../cloud/cloud.ts';
import { MUTATIONS, type Mutation } from '../../crd/intent.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type ClaimPlaces, claimPlacesOf } from './claim-places.ts';
import type { HoldReason, Ids, Intent, Leader } from './decision.ts';
import type { NodeView } from './node-view.ts';
import { isShortForPods, type Supply, supplyOf } from './supply.ts';

/** What the parts of a decision read: the view, and the status with the claim marks that this decision sets. */
export type Scene = {
  readonly view: NodeView;
  readonly status: NodeEniConfigStatus;
  readonly supply: Supply;
  readonly claims: ClaimPlaces;
  readonly leader: Leader;
  readonly ids: Ids;
  /** ENIs that have a call in flight. */
  readonly busy: ReadonlySet<string>;
  /** A creation, attachment or detachment is in flight and not stuck. An instance accepts one of these at a time. */
  readonly isInstanceBusy: boolean;
};

/** Result of one part of a decision; undefined when nothing is to be done. */
export type Step =
  | {
      readonly kind: 'begin';
      readonly status: NodeEniConfigStatus;
      readonly intent: Intent;
      readonly priority: CallPriority;
    }
  | Hold
  | undefined;

/** Why something that should be done cannot be done now. */
export type Hold = {
  readonly kind: 'hold';
  readonly reason: HoldReason;
  readonly message: string;
  readonly afterMs: number;
};

/** Actions of which an instance accepts one at a time: each takes the instance's own lock in the cloud. */
const OF_INSTANCE: readonly Mutation[] = ['CreateNetworkInterface', 'AttachNetworkInterface', 'DetachNetworkInterface'];

/** Builds the context of a decision: counts the node's supply and finds the ENIs that have a call in flight. */
export function sceneOf(view: NodeView, status: NodeEniConfigStatus, leader: Leader, ids: Ids): Scene {
  const intents = status.intents ?? [];
  const isStuck = (intent: Intent) => view.stuck.has(intent.id) || view.stuck.has(intent.eniID ?? '');
  const supply = supplyOf(view, status);
  return {
    view,
    status,
    supply,
    claims: claimPlacesOf(view, status, supply.perEni),
    leader,
    ids,
    busy: new Set(intents.flatMap(({ eniID, targetENIID }) => [eniID, targetENIID].filter((id) => id !== undefined))),
    isInstanceBusy: intents.some((intent) => OF_INSTANCE.includes(intent.action) && !isStuck(intent)),
  };
}

/** Starts a call: returns the intent with a new id, and the status that records the intent. Takes ids. */
export function begin(
  scene: Scene,
  action: Mutation,
  fields: Partial<Intent>,
  status: NodeEniConfigStatus = scene.status,
): Step {
  const id = scene.ids.next();
  const intent: Intent = {
    ...fields,
    id,
    action,
    phase: 'Recorded',
    leaderEpoch: scene.leader.epoch,
    ...(MUTATIONS[action].takesClientToken ? { clientToken: id } : {}),
    ...(action === 'CreateNetworkInterface' ? bornAs(scene, id, fields.tags) : {}),
    requestTimeoutSeconds: scene.leader.requestTimeoutSeconds,
    recordedAt: scene.ids.now(),
  };
  const next = { ...status, intents: [...(status.intents ?? []), intent] };
  return { kind: 'begin', status: next, intent, priority: priorityOf(scene, action) };
}

/** Returns why a call is blocked, if one of the keys has an open breaker; else undefined. */
export function holdIfBlocked(
  scene: Scene,
  keys: readonly string[],
  reason: HoldReason,
  text: string,
): Hold | undefined {
  const key = keys.find((candidate) => scene.view.blocked.has(candidate));
  if (key === undefined) return undefined;
  const refusal = scene.view.refusals?.get(key);
  const message = refusal === undefined || refusal.message === '' ? text : `${text}: ${refusal.message}`;
  return { kind: 'hold', reason, message, afterMs: refusal?.afterMs ?? LOOK_AGAIN_MS };
}

/** Result of a part that waits for another of ipamd's own calls. */
export const CALL_UNDER_WAY: Hold = {
  kind: 'hold',
  reason: 'CallUnderWay',
  message: 'a call to the cloud is under way',
  afterMs: 5_000,
};

/** When to check again if the end of the block is not known, milliseconds. */
export const LOOK_AGAIN_MS = 30_000;

const LONGEST_NAME = 60;
/**
 * Longest value of a tag, characters.
 * @see https://cloud.tencent.com/document/product/651/13354 (limits of tags)
 */
const LONGEST_TAG = 127;

/** Returns name and tags of a new ENI. They identify the ENI when the answer with its id was lost. */
function bornAs({ view, leader }: Scene, id: string, more: Intent['tags']): Pick<Intent, 'resourceName' | 'tags'> {
  return {
    resourceName: `tke-${leader.clusterId}`.slice(0, LONGEST_NAME - id.length - 1).concat('-', id),
    tags: {
      'tke-clusterId': leader.clusterId,
      'tke-created-eni': 'true',
      'tke-node': view.nodeName.slice(0, LONGEST_TAG),
      'tke-nec-uid': view.uid,
      ...more,
    },
  };
}

function priorityOf({ view, supply }: Scene, action: Mutation): CallPriority {
  switch (action) {
    case 'DetachNetworkInterface':
    case 'DeleteNetworkInterface':
    case 'UnassignPrivateIpAddresses':
      return 'gc';
    default:
      return isShortForPods(view, supply) ? 'pod' : 'warm';
  }
}
