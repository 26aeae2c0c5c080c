import { isRecord } from '../../runtime/decode.ts';
import { recordOf, wholeNumberOf } from '../../runtime/json.ts';
import type { KubeObject, ResourceType } from '../kube-client.ts';
import { apiVersionOf, CONFIG_MAPS, ENDPOINTS, LEASES } from '../resource-types.ts';

/** The content of a lock. @see client-go tools/leaderelection/resourcelock LeaderElectionRecord */
export type LockRecord = {
  /** Identity of the holder; empty: released. */
  readonly holder: string;
  readonly leaseSeconds: number;
  /** Count of terms; increases with each term. */
  readonly transitions: number;
  /** RFC 3339 on the holder's wall clock. For people only: no decision uses these times. */
  readonly acquireTime: string;
  readonly renewTime: string;
};

/**
 * The object that serves as the lock. One of kind `endpoints` has no addresses, and its annotation makes
 * kube-controller-manager leave it alone: neither deleted for want of a Service nor copied to an EndpointSlice.
 */
export type LockRef = {
  readonly kind: 'configmap' | 'lease' | 'endpoints';
  readonly namespace: string;
  readonly name: string;
};

/** The resource of each kind of lock. */
export const LOCK_TYPES: Readonly<Record<LockRef['kind'], ResourceType>> = {
  configmap: CONFIG_MAPS,
  lease: LEASES,
  endpoints: ENDPOINTS,
};

const ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';

/** A record that cannot be read. Some process may hold the lock, so a candidate waits as for any other holder. */
const UNREADABLE: LockRecord = { holder: '?', leaseSeconds: 0, transitions: 0, acquireTime: '', renewTime: '' };
const NEVER_HELD: LockRecord = { ...UNREADABLE, holder: '' };

/** Reads the record of a lock. Never throws; a field that is not a number counts as 0. */
export function readLockRecord(kind: LockRef['kind'], object: KubeObject): LockRecord {
  const found = kind === 'lease' ? object['spec'] : annotationOf(object);
  if (found === undefined) return NEVER_HELD;
  if (!isRecord(found)) return UNREADABLE;
  const transitions = kind === 'lease' ? found['leaseTransitions'] : found['leaderTransitions'];
  return {
    holder: typeof found['holderIdentity'] === 'string' ? found['holderIdentity'] : '',
    leaseSeconds: wholeNumberOf(found['leaseDurationSeconds']),
    transitions: wholeNumberOf(transitions),
    acquireTime: String(found['acquireTime'] ?? ''),
    renewTime: String(found['renewTime'] ?? ''),
  };
}

/** Notes of the leader that the lock has besides its record, as annotations, by name. */
export type LockNotes = Readonly<Record<string, string>>;

/** Writes a record and notes into a lock object and keeps its other fields; makes a new object when there is none. */
export function writeLockRecord(
  ref: LockRef,
  object: KubeObject | undefined,
  record: LockRecord,
  notes: LockNotes = {},
): KubeObject {
  const type = LOCK_TYPES[ref.kind];
  const metadata = object?.metadata ?? { name: ref.name, namespace: ref.namespace };
  const base = object ?? { apiVersion: apiVersionOf(type), kind: type.kind, metadata };
  const noted = { ...metadata, annotations: { ...metadata.annotations, ...notes } };
  const { holder, leaseSeconds, acquireTime, renewTime, transitions } = record;
  const common = { holderIdentity: holder, leaseDurationSeconds: leaseSeconds, acquireTime, renewTime };
  if (ref.kind === 'lease') {
    const present = recordOf(base['spec']);
    const spec = { ...present, ...common, leaseTransitions: transitions };
    return Object.keys(notes).length === 0 ? { ...base, spec } : { ...base, metadata: noted, spec };
  }
  const text = JSON.stringify({ ...common, leaderTransitions: transitions });
  return { ...base, metadata: { ...noted, annotations: { ...noted.annotations, [ANNOTATION]: text } } };
}

/** Renders a time in the format of the kind of lock: six decimal digits for a Lease, whole seconds for the others. */
export function lockTime(kind: LockRef['kind'], nowMs: number): string {
  const text = new Date(nowMs).toISOString();
  return kind === 'lease' ? text.replace(/Z$/, '000Z') : text.replace(/\.\d+Z$/, 'Z');
}

function annotationOf(object: KubeObject): unknown {
  const text = object.metadata.annotations?.[ANNOTATION];
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Edited by hand. A candidate waits as for any holder, and then overwrites it.
    return null;
  }
}
