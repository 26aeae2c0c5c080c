import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isDirectCreation } from './direct-creation.ts';
import type { NodeView } from './node-view.ts';
import { isUsable, type Supply, unseenCreations } from './supply.ts';

/** The most entries that `status.eniInfos` takes. */
const MOST_ENTRIES = 64;

/** What is taken of the places for a node's shared ENIs. */
export type EniPlaces = {
  /** ENIs that serve or will, those that are being made included. */
  readonly serving: number;
  /** Places of the instance that are taken, those of ENIs that are going included; and how many it has. */
  readonly placed: number;
  readonly places: number;
  /** Entries of the status. */
  readonly entries: number;
};

/** Counts the places for ENIs of a node. Pure. */
export function eniPlacesOf({ instance }: NodeView, status: NodeEniConfigStatus): EniPlaces {
  const enis = status.eniInfos ?? [];
  const creations = unseenCreations(status);
  const coming = creations.length;
  const shared = creations.filter((intent) => !isDirectCreation(intent)).length;
  return {
    serving: enis.filter((eni) => eni.state !== 'Detaching' && isUsable(eni)).length + shared,
    // One that was detached takes no place on the instance, nor one that goes before it was attached, though it is there.
    placed: enis.filter((eni) => !isOff(eni, status)).length + coming,
    places: instance?.secondaryEnis ?? 0,
    entries: enis.length + coming,
  };
}

function isOff({ eniID, state, draining, deviceIndex }: NodeEniInfo, { intents = [] }: NodeEniConfigStatus): boolean {
  if (deviceIndex !== undefined) return false;
  const isComing = intents.some((intent) => intent.action === 'AttachNetworkInterface' && intent.eniID === eniID);
  return state === 'Detaching' || (state === 'Attaching' && draining === true && !isComing);
}

/** Counts the shared ENIs that a node may still get now; not below 0. Pure. */
export function placesLeft(view: NodeView, status: NodeEniConfigStatus, { mostEnis }: Supply): number {
  const { serving, placed, places, entries } = eniPlacesOf(view, status);
  return Math.max(0, Math.min(mostEnis - serving, places - placed, MOST_ENTRIES - entries));
}
