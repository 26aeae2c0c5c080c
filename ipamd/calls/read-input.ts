import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { renderFault } from '../../runtime/decode.ts';
import { recordOf, wholeNumberOf } from '../../runtime/json.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeProblem } from '../decide/node-view.ts';
import type { NodeDeps } from './node-deps.ts';

/** A node's object as it was read, or as it was repaired: what a pass works on. */
export type ReconcileInput = {
  readonly name: string;
  readonly uid: string;
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
  /** Present when the status must be rebuilt from the cloud before anything is decided: why. */
  readonly why?: string;
  /** Faults of the object itself that are worked around. */
  readonly faults: readonly NodeProblem[];
  /** Claims by their static address: such an address that is found in the cloud gets its mark. */
  readonly reservedIps: () => ReadonlyMap<string, string> | undefined;
};

/** Reads what a pass works on from a node's object. */
export function readInput({ facts, lostEpochOf }: NodeDeps, entry: NecEntry): ReconcileInput {
  const { name, object } = entry;
  const reservedIps = () => {
    const answer = facts.viewOf(name, entry);
    return answer.kind === 'known' ? answer.values.reservedIps : answer.reservedIps;
  };
  const read = readStatus(entry, lostEpochOf?.(name));
  return { name, uid: object.metadata.uid ?? '', ...read, faults: faultsOf(entry), reservedIps };
}

/**
 * Reads spec and status. An unreadable status counts as an old one: it is rebuilt. So does a status that was never
 * described, when an object of the node with `lostEpoch` was lost: it replaces that one.
 */
function readStatus(
  { object, decoded }: NecEntry,
  lostEpoch: number | undefined,
): Pick<ReconcileInput, 'spec' | 'status' | 'why'> {
  if (decoded !== undefined) {
    const { spec = {}, status = {} } = decoded;
    const restored = restoredReason(spec, status);
    if (lostEpoch !== undefined && isUntouched(status)) {
      const observedSupplyEpoch = Math.max(spec.observedSupplyEpoch ?? 0, lostEpoch + 1);
      return { spec: { ...spec, observedSupplyEpoch }, status, why: 'an earlier object of the node was lost' };
    }
    return { spec, status, ...(restored === undefined ? {} : { why: restored }) };
  }
  const raw = recordOf(object['status']);
  const spec = recordOf(object['spec']);
  const supplyEpoch = wholeNumberOf(raw['supplyEpoch']);
  const instanceID = raw['instanceID'];
  return {
    // Above the object's own epoch, so that everything in the object counts as old.
    spec: { observedSupplyEpoch: Math.max(wholeNumberOf(spec['observedSupplyEpoch']), supplyEpoch + 1) },
    status: { supplyEpoch, ...(typeof instanceID === 'string' && instanceID !== '' ? { instanceID } : {}) },
    why: 'the status of the object cannot be read',
  };
}

/** Returns why the status is too old: the agent has seen a later epoch. Undefined when it has not. */
export function restoredReason(spec: NodeEniConfigSpec, status: NodeEniConfigStatus): string | undefined {
  const observed = spec.observedSupplyEpoch ?? 0;
  const current = status.supplyEpoch ?? 0;
  return observed > current ? `the agent has seen supply epoch ${observed}, the object has ${current}` : undefined;
}

/** Reports whether the cloud was never described in a status. */
export function isUntouched({
  supplyEpoch = 0,
  describedAt,
  eniInfos = [],
  intents = [],
}: NodeEniConfigStatus): boolean {
  return supplyEpoch === 0 && describedAt === undefined && eniInfos.length + intents.length === 0;
}

/** More faults would fill a condition without being useful. */
const MAX_FAULTS = 5;

function faultsOf({ faults }: NecEntry): readonly NodeProblem[] {
  if (faults.length === 0) return [];
  const shown = faults.slice(0, MAX_FAULTS).map(renderFault);
  return [{ reason: 'ObjectInvalid', message: shown.join('; ') }];
}
