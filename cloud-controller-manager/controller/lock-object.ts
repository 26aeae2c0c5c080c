import { LOCK_TYPES, type LockRef } from '../../kube/election/lock-record.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import type { CcmConfig } from '../config/options.ts';

/** The object on which people look for problems of the setup: the lock of the leader election. */
export function lockObjectOf({
  leaderElectLock,
  leaderElectName: name,
  namespace,
}: Pick<CcmConfig, 'leaderElectLock' | 'leaderElectName' | 'namespace'>) {
  const type = LOCK_TYPES[LOCK_KINDS[leaderElectLock]];
  return involvedObject(type, { namespace, name });
}

/** Kinds of locks by their names in flags. */
export const LOCK_KINDS: Readonly<Record<CcmConfig['leaderElectLock'], LockRef['kind']>> = {
  endpoints: 'endpoints',
  leases: 'lease',
  configmaps: 'configmap',
};
