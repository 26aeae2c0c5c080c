import { option } from '../../runtime/settings/option.ts';
import { choiceValue, durationValue, switchValue } from '../../runtime/settings/option-value.ts';
import { objectNameValue } from '../kube-option-value.ts';

const SECTION = 'Kubernetes';
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** What differs between the programs. */
type ElectionTexts = {
  /** What only the holder of the lock does, as the first word of the help. */
  readonly verb: string;
  readonly lockName: string;
  readonly minLeaseMs: number;
  readonly lease: string;
  /** What the help of the lease adds, from a space on. */
  readonly leaseHelp?: string;
  readonly retry: string;
};

/** Makes the settings of a leader election; `ElectionSettings` without the namespace, and whether there is one. */
export function electionOptions({ verb, lockName, minLeaseMs, lease, leaseHelp = '', retry }: ElectionTexts) {
  return {
    leaderElect: option(
      SECTION,
      'leader-elect',
      switchValue,
      'true',
      `${verb} only with the lock. Without it never run two.`,
    ),
    leaderElectLock: option(
      SECTION,
      'leader-elect-lock',
      choiceValue('configmap', 'lease', 'endpoints'),
      'configmap',
      'Kind of the lock. The published ClusterRole grants ConfigMaps and Endpoints, and no Leases.',
    ),
    leaderElectName: option(SECTION, 'leader-elect-name', objectNameValue, lockName, 'Name of the lock.'),
    leaderElectLeaseMs: option(
      SECTION,
      'leader-elect-lease',
      durationValue(minLeaseMs, 10 * MINUTE_MS),
      lease,
      `How long other replicas wait for a leader that does not renew.${leaseHelp}`,
    ),
    leaderElectRenewMs: option(
      SECTION,
      'leader-elect-renew',
      durationValue(SECOND_MS, 5 * MINUTE_MS),
      '10s',
      'How often the leader renews. Each renewal of a ConfigMap is sent to every watcher.',
    ),
    leaderElectRetryMs: option(
      SECTION,
      'leader-elect-retry',
      durationValue(100, MINUTE_MS),
      retry,
      'How often other replicas read the lock, and the leader tries again when a renewal failed.',
    ),
  };
}
