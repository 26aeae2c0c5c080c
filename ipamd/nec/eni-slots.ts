import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { isDirectCreation } from './direct-creation.ts';
import type { NodeView } from './node-view.ts';
import { countExtensionEnis, isUsable, pendingCreations, type Supply, usesNoSlot } from './supply.ts';

/** Maximum of entries in `status.eniInfos`, of the schema. */
const MAX_ENTRIES = 64;

/** ENI slots of a node, as far as its shared ENIs use them. */
type EniSlots = {
  /** ENIs that serve or will serve, those that are being created included. */
  readonly serving: number;
  /** Used standard slots of the instance, those of ENIs that are being detached included; and the total. */
  readonly used: number;
  readonly total: number;
  /** Entries of the status. */
  readonly entries: number;
};

/** Counts the ENI slots of a node. */
export function countEniSlots({ instance }: NodeView, status: NodeEniConfigStatus): EniSlots {
  const enis = status.eniInfos ?? [];
  const creations = pendingCreations(status);
  const coming = creations.length;
  const extension = countExtensionEnis(instance, status);
  const shared = creations.filter((intent) => !isDirectCreation(intent)).length;
  return {
    serving: enis.filter((eni) => eni.state !== 'Detaching' && isUsable(eni)).length + shared,
    // A detached ENI uses no slot of the instance; nor does an ENI that is removed before it was attached.
    used: enis.filter((eni) => !usesNoSlot(eni, status)).length + coming - extension,
    total: instance?.secondaryEnis ?? 0,
    entries: enis.length + coming,
  };
}

/** Counts the shared ENIs that a node may still get now; not below 0. */
export function freeEniSlots(view: NodeView, status: NodeEniConfigStatus, { maxEnis }: Supply): number {
  const { serving, used, total, entries } = countEniSlots(view, status);
  return Math.max(0, Math.min(maxEnis - serving, total - used, MAX_ENTRIES - entries));
}
