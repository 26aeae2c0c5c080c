import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { ClaimWish } from './claim-wish.ts';
import type { Intent } from './decision.ts';
import { eniClaimOf, isDirectCreation } from './direct-creation.ts';
import { eniPlacesOf } from './eni-places.ts';
import type { NodeView } from './node-view.ts';
import { unseenCreations } from './supply.ts';
import { isShared } from './with-enis.ts';

/** Exclusive ENIs of a node: existing, pending and requested. Pool ENIs and static ones are counted apart. */
export type DirectSupply = {
  /** Pool ENIs, attached and not draining. */
  readonly have: number;
  /** Pool ENIs that are being attached or created; stuck ones are not counted. */
  readonly coming: number;
  /** Demand of the agent for its pool. */
  readonly demand: number;
  /** The demand within the limits, minus the slots of static ENIs; 0 for a node that is torn down. */
  readonly want: number;
  /** Limit of exclusive ENIs beside the node's shared ones, static ones included. */
  readonly most: number;
  /** ENI slots that static ENIs use. */
  readonly kept: number;
  /** ENI slots that static ENIs will use: requested here, and the node has nothing for them yet. */
  readonly awaited: number;
  /** New exclusive ENIs that fit now; not below 0. */
  readonly placesLeft: number;
};

/** Counts a node's exclusive ENIs. */
export function directSupplyOf(view: NodeView, status: NodeEniConfigStatus): DirectSupply {
  const enis = directEnisOf(status);
  const placed = enis.filter(takesPlace);
  const creations = directCreationsOf(status);
  const pool = placed.filter((eni) => eni.claim === undefined && eni.draining !== true);
  const newPool = creations.filter((intent) => intent.claim === undefined && !isStuck(view, intent));
  const kept = placed.filter((eni) => eni.claim !== undefined).length + creations.filter(isForClaim).length;
  const awaited = view.leaving === 'no' ? awaitedWishes(view, status).length : 0;
  const { places, placed: taken, entries } = eniPlacesOf(view, status);
  const ofShared = taken - placed.length - creations.length;
  const most = Math.max(0, Math.min(view.maxDirectENI ?? 0, places - ofShared));
  const demand = view.spec.desiredDirectENI ?? view.initialDirectDemand ?? 0;
  return {
    have: pool.filter((eni) => eni.state === 'Attached').length,
    coming: pool.filter((eni) => eni.state === 'Attaching' && !view.stuck.has(eni.eniID)).length + newPool.length,
    demand,
    want: view.leaving === 'no' ? Math.max(0, Math.min(demand, most - kept - awaited)) : 0,
    most,
    kept,
    awaited,
    placesLeft: Math.max(0, Math.min(most - placed.length - creations.length, places - taken, MOST_ENTRIES - entries)),
  };
}

/** Maximum of entries in `status.eniInfos`, of the schema. */
const MOST_ENTRIES = 64;

/** Lists the exclusive ENIs of a node. */
export function directEnisOf({ eniInfos = [] }: NodeEniConfigStatus): readonly NodeEniInfo[] {
  return eniInfos.filter((eni) => !isShared(eni));
}

/** Lists the creations of exclusive ENIs that are not in the status yet. */
function directCreationsOf(status: NodeEniConfigStatus): readonly Intent[] {
  return unseenCreations(status).filter(isDirectCreation);
}

/** Lists the requests for an exclusive ENI here for which the node has neither an ENI nor a call in flight. */
export function awaitedWishes(view: NodeView, status: NodeEniConfigStatus): readonly ClaimWish[] {
  const enis = directEnisOf(status);
  const asked = new Set(directCreationsOf(status).map(({ claim }) => claim));
  const isMet = (wish: ClaimWish) => enis.some((eni) => eniClaimOf(eni) === wish.key && isFor(wish, eni));
  return wishesHere(view).filter((wish) => !asked.has(wish.key) && !isMet(wish));
}

/** Tells whether an ENI with the mark of a request's claim is the one for its Pod on this node. */
export function isFor({ want, ip }: ClaimWish, { primaryIP }: NodeEniInfo): boolean {
  return want === 'here' && (ip === undefined || ip === primaryIP);
}

/** Lists the requests for an exclusive ENI on this node, by key. */
export function wishesHere({ claims }: Pick<NodeView, 'claims'>): readonly ClaimWish[] {
  const wishes = [...(claims?.values() ?? [])];
  return wishes
    .filter(({ mode, want }) => mode === 'direct-eni' && want === 'here')
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** Tells whether an ENI uses a slot of the instance. A detached one does not, though its entry still exists. */
function takesPlace(eni: NodeEniInfo): boolean {
  return eni.state !== 'Detaching' || eni.deviceIndex !== undefined;
}

function isForClaim({ claim }: Intent): boolean {
  return claim !== undefined;
}

function isStuck({ stuck }: NodeView, { id, eniID = '' }: Intent): boolean {
  return stuck.has(id) || stuck.has(eniID);
}
