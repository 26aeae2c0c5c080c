import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Ids } from './decision.ts';
import { isSameData } from './same-data.ts';
import { withEnis } from './with-enis.ts';

type Field = keyof NodeEniConfigStatus;

/** Fields that come from the description of the instance: they are written with the policy, not with ENIs. */
export const INSTANCE_FIELDS = ['instanceType', 'zone', 'vpcID', 'maxEIPs', 'instanceENIs', 'extensionENIs'] as const;

/**
 * Fields that this comparison leaves out. Conditions are evaluated in each pass, and other clients may add some; of the
 * epoch only a lower one is an edit.
 */
const LEFT_OUT: ReadonlySet<Field> = new Set([...INSTANCE_FIELDS, 'conditions', 'supplyEpoch']);

/** A status without the changes of another client, and the fields that it had changed. */
type UndoneEdit = { readonly status: NodeEniConfigStatus; readonly fields: readonly string[] };

/** Lists the fields of a status that another client than ipamd changed since ipamd had it as `own`. */
export function findEditedFields(own: NodeEniConfigStatus, current: NodeEniConfigStatus): readonly Field[] {
  // Keys of the two statuses themselves.
  const keys = [...new Set([...Object.keys(own), ...Object.keys(current)])] as Field[];
  // ipamd takes the instance from the Node only while the object names none.
  const isFirst = own.instanceID === undefined;
  const edited = keys.filter(
    (key) => !LEFT_OUT.has(key) && !(key === 'instanceID' && isFirst) && !isSameData(own[key], current[key]),
  );
  return (current.supplyEpoch ?? 0) < (own.supplyEpoch ?? 0) ? [...edited, 'supplyEpoch'] : edited;
}

/**
 * Returns the status as ipamd had it last, whatever another client wrote since. The agent may have acted on the edit: an
 * ENI that was changed, and each of its addresses in use, gets a new assignment id, so that no earlier offer counts,
 * and the epoch grows. Undefined when nothing was changed. Takes ids.
 */
export function undoEdit(own: NodeEniConfigStatus, current: NodeEniConfigStatus, ids: Ids): UndoneEdit | undefined {
  const fields = findEditedFields(own, current);
  if (fields.length === 0) return undefined;
  const kept = Object.fromEntries(Object.entries(current).filter(([key]) => LEFT_OUT.has(key as Field)));
  const restored = Object.fromEntries(Object.entries(own).filter(([key]) => !LEFT_OUT.has(key as Field)));
  const supplyEpoch = Math.max(own.supplyEpoch ?? 0, current.supplyEpoch ?? 0);
  const edited = new Map((current.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  const enis = (own.eniInfos ?? []).map((eni) => (isSameData(eni, edited.get(eni.eniID)) ? eni : withNewIds(eni, ids)));
  // The edited ENIs are what the agent has; the epoch grows when they are replaced.
  const before = { ...kept, ...restored, supplyEpoch, eniInfos: current.eniInfos ?? [] };
  return { status: withEnis(before, enis), fields };
}

function withNewIds(eni: NodeEniInfo, ids: Ids): NodeEniInfo {
  const addresses = (eni.addresses ?? []).map((address) =>
    address.state === 'Assigned' ? { ...address, assignmentID: ids.next() } : address,
  );
  const isBound = eni.state === 'Attached' && eni.assignmentID !== undefined;
  return { ...eni, ...(isBound ? { assignmentID: ids.next() } : {}), addresses };
}
