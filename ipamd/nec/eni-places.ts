import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isDirectCreation } from './direct-creation.ts';
import type { NodeView } from './node-view.ts';
import { isUsable, type Supply, unseenCreations } from './supply.ts';

/** Maximum of entries in `status.eniInfos`, of the schema. */
const MOST_ENTRIES = 64;

/** ENI slots of a node, as far as its shared ENIs use them. */
type EniPlaces = {
  /** ENIs that serve or will serve, those that are being created included. */
  readonly serving: number;
  /** Used ENI slots of the instance, those of ENIs that are being detached included; and the total. */
  readonly placed: number;
  readonly places: number;
  /** Entries of the status. */
  readonly entries: number;
};

/** Counts the ENI slots of a node. */
export function eniPlacesOf({ instance }: NodeView, status: NodeEniConfigStatus): EniPlaces {
  const enis = status.eniInfos ?? [];
  const creations = unseenCreations(status);
  const coming = creations.length;
  const shared = creations.filter((intent) => !isDirectCreation(intent)).length;
  return {
    serving: enis.filter((eni) => eni.state !== 'Detaching' && isUsable(eni)).length + shared,
    // A detached ENI uses no slot of the instance; nor does an ENI that is removed before it was attached.
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

/** Counts the shared ENIs that a node may still get now; not below 0. */
export function placesLeft(view: NodeView, status: NodeEniConfigStatus, { mostEnis }: Supply): number {
  const { serving, placed, places, entries } = eniPlacesOf(view, status);
  return Math.max(0, Math.min(mostEnis - serving, places - placed, MOST_ENTRIES - entries));
}
