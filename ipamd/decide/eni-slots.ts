import { countEniPlaces, type EniPlaces, freeSharedEnis } from '../../crd/eni-places.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { NodeView } from './node-view.ts';

/** Counts how the ENIs of a node use the places of its instance. */
export function eniPlacesOf(view: NodeView, status: NodeEniConfigStatus): EniPlaces {
  const { maxRouteENI, instance } = view;
  const { secondaryEnis: standard, extensionEnis: extension = 0 } = instance ?? {};
  return countEniPlaces(status, { maxShared: maxRouteENI, standard, extension });
}

/** Counts the shared ENIs that a node may still get now; 0 while its instance is unknown. */
export function freeEniSlots(view: NodeView, status: NodeEniConfigStatus): number {
  return view.instance === undefined ? 0 : freeSharedEnis(eniPlacesOf(view, status));
}
