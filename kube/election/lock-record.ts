import { isRecord } from '../../runtime/decode.ts';
import type { KubeObject } from '../kube-client.ts';
import { apiVersionOf, CONFIG_MAPS, LEASES } from '../resource-types.ts';

/** What a lock says. @see client-go tools/leaderelection/resourcelock LeaderElectionRecord */
export type LockRecord = {
  /** Empty: released. */
  readonly holder: string;
  readonly leaseSeconds: number;
  /** Grows with each term. */
  readonly transitions: number;
  /** RFC 3339, of the holder's wall clock: for people; nothing is decided by them. */
  readonly acquireTime: string;
  readonly renewTime: string;
};

/** Which object is the lock. */
export type LockRef = { readonly kind: 'configmap' | 'lease'; readonly namespace: string; readonly name: string };

const ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';

/** What nobody wrote, or what cannot be read: somebody may hold it, so it is waited for like any other. */
const UNREADABLE: LockRecord = { holder: '?', leaseSeconds: 0, transitions: 0, acquireTime: '', renewTime: '' };
const NEVER_HELD: LockRecord = { ...UNREADABLE, holder: '' };

/** Reads the record of a lock. Never throws; a field that is no number counts as 0. Pure. */
export function readLockRecord(kind: LockRef['kind'], object: KubeObject): LockRecord {
  const found = kind === 'lease' ? object['spec'] : annotationOf(object);
  if (found === undefined) return NEVER_HELD;
  if (!isRecord(found)) return UNREADABLE;
  const transitions = kind === 'lease' ? found['leaseTransitions'] : found['leaderTransitions'];
  return {
    holder: typeof found['holderIdentity'] === 'string' ? found['holderIdentity'] : '',
    leaseSeconds: numberOf(found['leaseDurationSeconds']),
    transitions: numberOf(transitions),
    acquireTime: String(found['acquireTime'] ?? ''),
    renewTime: String(found['renewTime'] ?? ''),
  };
}

/** Writes a record into a lock, all else kept; into a new one when there is none. Pure. */
export function writeLockRecord(ref: LockRef, object: KubeObject | undefined, record: LockRecord): KubeObject {
  const type = ref.kind === 'lease' ? LEASES : CONFIG_MAPS;
  const metadata = object?.metadata ?? { name: ref.name, namespace: ref.namespace };
  const base = object ?? { apiVersion: apiVersionOf(type), kind: type.kind, metadata };
  const { holder, leaseSeconds, acquireTime, renewTime, transitions } = record;
  const common = { holderIdentity: holder, leaseDurationSeconds: leaseSeconds, acquireTime, renewTime };
  if (ref.kind === 'lease') {
    const kept = isRecord(base['spec']) ? base['spec'] : {};
    return { ...base, spec: { ...kept, ...common, leaseTransitions: transitions } };
  }
  const text = JSON.stringify({ ...common, leaderTransitions: transitions });
  return { ...base, metadata: { ...metadata, annotations: { ...metadata.annotations, [ANNOTATION]: text } } };
}

/** Writes a moment as the kind of lock has it: whole seconds, or six digits below them, and nothing else. Pure. */
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
    // Overwritten by hand. It is waited for, and written anew.
    return null;
  }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}
