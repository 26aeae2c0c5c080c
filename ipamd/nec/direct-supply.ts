import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { ClaimWish } from './claim-wish.ts';
import type { Intent } from './decision.ts';
import { eniClaimOf, isDirectCreation } from './direct-creation.ts';
import { eniPlacesOf } from './eni-places.ts';
import type { NodeView } from './node-view.ts';
import { unseenCreations } from './supply.ts';
import { isShared } from './with-enis.ts';

/** What a node has, gets and wants of exclusive ENIs. Those of the pool, and those kept for Pods of one name, apart. */
export type DirectSupply = {
  /** Of the pool, attached and not draining. */
  readonly have: number;
  /** Of the pool, being attached or made; what is stuck is not counted on. */
  readonly coming: number;
  /** What the agent asks for its pool. */
  readonly demand: number;
  /** The demand within the limits, less the places of kept ones; 0 for a node that leaves. */
  readonly want: number;
  /** Most exclusive ENIs that the node may have beside its shared ones, kept ones included. */
  readonly most: number;
  /** Places that kept ones have. */
  readonly kept: number;
  /** Places that kept ones are about to have: wished here, and nothing of theirs is on the node yet. */
  readonly awaited: number;
  /** New exclusive ENIs that there is a place for now; not below 0. */
  readonly placesLeft: number;
};

/** Counts a node's exclusive ENIs. Pure. */
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

/** The most entries that `status.eniInfos` takes. */
const MOST_ENTRIES = 64;

/** Lists the exclusive ENIs of a node. Pure. */
export function directEnisOf({ eniInfos = [] }: NodeEniConfigStatus): readonly NodeEniInfo[] {
  return eniInfos.filter((eni) => !isShared(eni));
}

/** Lists the creations of exclusive ENIs that are not in the status yet. Pure. */
export function directCreationsOf(status: NodeEniConfigStatus): readonly Intent[] {
  return unseenCreations(status).filter(isDirectCreation);
}

/** Lists the wishes for an exclusive ENI here of which the node has nothing yet, no call under way either. Pure. */
export function awaitedWishes(view: NodeView, status: NodeEniConfigStatus): readonly ClaimWish[] {
  const enis = directEnisOf(status);
  const asked = new Set(directCreationsOf(status).map(({ claim }) => claim));
  const isMet = (wish: ClaimWish) => enis.some((eni) => eniClaimOf(eni) === wish.key && isFor(wish, eni));
  return wishesHere(view).filter((wish) => !asked.has(wish.key) && !isMet(wish));
}

/** Tells whether an ENI with the mark of a wish's claim is the one that its Pod is to have on this node. Pure. */
export function isFor({ want, ip }: ClaimWish, { primaryIP }: NodeEniInfo): boolean {
  return want === 'here' && (ip === undefined || ip === primaryIP);
}

/** Lists the wishes for an exclusive ENI on this node, by key. Pure. */
export function wishesHere({ claims }: Pick<NodeView, 'claims'>): readonly ClaimWish[] {
  const wishes = [...(claims?.values() ?? [])];
  return wishes
    .filter(({ mode, want }) => mode === 'direct-eni' && want === 'here')
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** One that was taken off takes no place on the instance, though its entry is still there. */
function takesPlace(eni: NodeEniInfo): boolean {
  return eni.state !== 'Detaching' || eni.deviceIndex !== undefined;
}

function isForClaim({ claim }: Intent): boolean {
  return claim !== undefined;
}

function isStuck({ stuck }: NodeView, { id, eniID = '' }: Intent): boolean {
  return stuck.has(id) || stuck.has(eniID);
}
