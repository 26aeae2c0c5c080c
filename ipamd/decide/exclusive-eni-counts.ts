import { isExclusiveCreation } from '../../crd/eni-places.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { pendingCreationsOf } from '../../crd/subnet-supply.ts';
import type { ClaimRequest } from './claim-request.ts';
import type { Intent } from './decision.ts';
import { eniPlacesOf } from './eni-slots.ts';
import { eniClaimOf } from './exclusive-creation.ts';
import type { NodeView } from './node-view.ts';
import { isShared } from './with-enis.ts';

/** Exclusive ENIs of a node: existing, pending and requested. Pool ENIs and static ones are counted apart. */
export type ExclusiveEniCounts = {
  /** Pool ENIs, attached and not draining. */
  readonly have: number;
  /** Pool ENIs that are being attached or created; stuck ones are not counted. */
  readonly coming: number;
  /** Demand of the agent for its pool. */
  readonly demand: number;
  /** The demand within the limits, minus the slots of static ENIs; 0 for a node that is torn down. */
  readonly want: number;
  /** Limit of exclusive ENIs beside the node's shared ones, static ones included. */
  readonly limit: number;
  /** ENI slots that static ENIs use. */
  readonly staticEnis: number;
  /** ENI slots that static ENIs will use: requested here, and the node has nothing for them yet. */
  readonly awaited: number;
  /** New exclusive ENIs that fit now; not below 0. */
  readonly freeSlots: number;
};

/** Counts a node's exclusive ENIs. */
export function countExclusiveEnis(view: NodeView, status: NodeEniConfigStatus): ExclusiveEniCounts {
  const enis = exclusiveEnisOf(status);
  const occupying = enis.filter(usesSlot);
  const creations = exclusiveCreationsOf(status);
  const pool = occupying.filter((eni) => eni.claim === undefined && eni.draining !== true);
  const newPool = creations.filter((intent) => intent.claim === undefined && !isStuck(view, intent));
  const staticEnis = occupying.filter((eni) => eni.claim !== undefined).length + creations.filter(isForClaim).length;
  const awaited = view.leaving === 'no' ? openEniRequests(view, status).length : 0;
  const eniPlaces = eniPlacesOf(view, status);
  const { standard: total = 0, used: taken, onExtension: extension, entries } = eniPlaces;
  const onStandard = occupying.length + creations.length - extension;
  const ofShared = taken - onStandard;
  const places = eniPlaces.extension;
  // New ones come to standard places only where there are no others.
  const limit = Math.max(0, Math.min(view.maxDirectENI ?? 0, places > 0 ? places + onStandard : total - ofShared));
  const free = places > 0 ? places - extension : total - taken;
  const demand = view.spec.desiredDirectENI ?? view.initialExclusiveDemand ?? 0;
  return {
    have: pool.filter((eni) => eni.state === 'Attached').length,
    coming: pool.filter((eni) => eni.state === 'Attaching' && !view.stuck.has(eni.eniID)).length + newPool.length,
    demand,
    want: view.leaving === 'no' ? Math.max(0, Math.min(demand, limit - staticEnis - awaited)) : 0,
    limit,
    staticEnis,
    awaited,
    freeSlots: Math.max(0, Math.min(limit - occupying.length - creations.length, free, MAX_ENTRIES - entries)),
  };
}

/** Maximum of entries in `status.eniInfos`, of the schema. */
const MAX_ENTRIES = 64;

/** Lists the exclusive ENIs of a node. */
export function exclusiveEnisOf({ eniInfos = [] }: NodeEniConfigStatus): readonly NodeEniInfo[] {
  return eniInfos.filter((eni) => !isShared(eni));
}

/** Lists the creations of exclusive ENIs that are not in the status yet. */
function exclusiveCreationsOf(status: NodeEniConfigStatus): readonly Intent[] {
  return pendingCreationsOf(status).filter(isExclusiveCreation);
}

/** Lists the requests for an exclusive ENI here for which the node has neither an ENI nor a call in flight. */
export function openEniRequests(view: NodeView, status: NodeEniConfigStatus): readonly ClaimRequest[] {
  const enis = exclusiveEnisOf(status);
  const inFlight = new Set(exclusiveCreationsOf(status).map(({ claim }) => claim));
  const isMet = (request: ClaimRequest) =>
    enis.some((eni) => eniClaimOf(eni) === request.key && matchesEni(request, eni));
  return eniRequestsHere(view).filter((request) => !inFlight.has(request.key) && !isMet(request));
}

/** Reports whether an ENI with the mark of a request's claim is the one for its Pod on this node. */
export function matchesEni({ goal, ip }: ClaimRequest, { primaryIP }: NodeEniInfo): boolean {
  return goal === 'here' && (ip === undefined || ip === primaryIP);
}

/** Lists the requests for an exclusive ENI on this node, by key. */
export function eniRequestsHere({ claims }: Pick<NodeView, 'claims'>): readonly ClaimRequest[] {
  const requests = [...(claims?.values() ?? [])];
  return requests
    .filter(({ mode, goal }) => mode === 'direct-eni' && goal === 'here')
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** Reports whether an ENI uses a slot of the instance. A detached one does not, though its entry still exists. */
function usesSlot(eni: NodeEniInfo): boolean {
  return eni.state !== 'Detaching' || eni.deviceIndex !== undefined;
}

function isForClaim({ claim }: Intent): boolean {
  return claim !== undefined;
}

function isStuck({ stuck }: NodeView, { id, eniID = '' }: Intent): boolean {
  return stuck.has(id) || stuck.has(eniID);
}
