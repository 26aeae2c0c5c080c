import { MODE_TAG } from './cloud-tags.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from './node-eni-config-fields.ts';
import { pendingCreationsOf } from './subnet-supply.ts';

type Intent = NonNullable<NodeEniConfigStatus['intents']>[number];

/** The limits of a node's ENIs. */
type EniLimits = {
  /** Most shared ENIs by policy and annotations; undefined: no such limit. */
  readonly maxShared: number | undefined;
  /** Standard places of the instance, without that of the primary ENI; undefined: not known. */
  readonly standard: number | undefined;
  /** Places of the extension type, which exclusive ENIs alone use; 0: none. */
  readonly extension: number;
};

/** How a node's ENIs use the places of its instance, those that are being created included. */
export type EniPlaces = EniLimits & {
  /** Shared ENIs that serve Pods, or will. */
  readonly serving: number;
  /** Used standard places, those of ENIs that are being detached included. */
  readonly used: number;
  /** Exclusive ENIs, and those of them that are on standard places. */
  readonly exclusive: number;
  readonly exclusiveOnStandard: number;
  /** Exclusive ENIs on places of the extension type, or that come there. */
  readonly onExtension: number;
  /** Entries of the status. */
  readonly entries: number;
};

/** Maximum of entries in `status.eniInfos`, of the schema. */
const MAX_ENTRIES = 64;

/**
 * Counts the places that a node's ENIs use. ipamd and the scheduler count alike: a Pod is bound only where its ENI can
 * have a place.
 */
export function countEniPlaces(status: NodeEniConfigStatus, limits: EniLimits): EniPlaces {
  const { eniInfos = [] } = status;
  const creations = pendingCreationsOf(status);
  const coming = creations.filter(isExclusiveCreation).length;
  const exclusive = eniInfos.filter((eni) => !isShared(eni)).length + coming;
  const onExtension = countOnExtension(status, limits.extension > 0, coming);
  const serving = eniInfos.filter((eni) => eni.state !== 'Detaching' && isShared(eni) && eni.draining !== true).length;
  return {
    ...limits,
    serving: serving + creations.length - coming,
    // A detached ENI uses no place of the instance; nor does an ENI that is removed before it was attached.
    used: eniInfos.filter((eni) => !usesNoPlace(eni, status)).length + creations.length - onExtension,
    exclusive,
    exclusiveOnStandard: exclusive - onExtension,
    onExtension,
    entries: eniInfos.length + creations.length,
  };
}

/**
 * Returns the limit of shared ENIs. Exclusive ENIs on standard places use places of theirs.
 * @param promised exclusive ENIs that will come beside those that are counted
 */
export function maxSharedEnis(places: EniPlaces, promised = 0): number {
  const { maxShared = MAX_ENTRIES, standard, exclusiveOnStandard } = places;
  if (standard === undefined) return maxShared;
  return Math.min(maxShared, Math.max(0, standard - exclusiveOnStandard - onStandard(places, promised)));
}

/**
 * Returns how many more shared ENIs a node can have now; not below 0.
 * @param promised exclusive ENIs that will come beside those that are counted
 */
export function freeSharedEnis(places: EniPlaces, promised = 0): number {
  const { standard = Number.POSITIVE_INFINITY, serving, used, entries } = places;
  const free = standard - used - onStandard(places, promised);
  return Math.max(0, Math.min(maxSharedEnis(places, promised) - serving, free, MAX_ENTRIES - entries));
}

/** Reports whether an intent creates an exclusive ENI. */
export function isExclusiveCreation({ action, tags }: Pick<Intent, 'action' | 'tags'>): boolean {
  return action === 'CreateNetworkInterface' && tags?.[MODE_TAG.name] !== undefined;
}

/** New exclusive ENIs come to standard places only where there are no others. */
function onStandard({ extension }: EniLimits, promised: number): number {
  return extension > 0 ? 0 : promised;
}

/**
 * Counts the exclusive ENIs that use a place of the extension type, or will use one: those that were put there, and, on
 * an instance with such places, those that are not attached yet. What stands on a standard place stays counted there.
 */
function countOnExtension(status: NodeEniConfigStatus, hasPlaces: boolean, coming: number): number {
  const { eniInfos = [], intents = [] } = status;
  const uses = (eni: NodeEniInfo): boolean =>
    eni.attachType === 'extension' ||
    (hasPlaces &&
      !isShared(eni) &&
      eni.deviceIndex === undefined &&
      eni.state === 'Attaching' &&
      !isBeingAttached(eni, intents));
  const present = eniInfos.filter((eni) => !usesNoPlace(eni, status) && uses(eni)).length;
  return present + (hasPlaces ? coming : 0);
}

/** Reports whether an ENI uses no place of the instance: it is detached, or is removed before it was attached. */
function usesNoPlace(eni: NodeEniInfo, { intents = [] }: NodeEniConfigStatus): boolean {
  const { state, draining, deviceIndex } = eni;
  if (deviceIndex !== undefined) return false;
  return state === 'Detaching' || (state === 'Attaching' && draining === true && !isBeingAttached(eni, intents));
}

function isBeingAttached({ eniID }: NodeEniInfo, intents: readonly Intent[]): boolean {
  return intents.some((intent) => intent.action === 'AttachNetworkInterface' && intent.eniID === eniID);
}

function isShared({ mode }: NodeEniInfo): boolean {
  return mode === undefined || mode === 'route-eni';
}
