import type { FaultAction as KubeFaultAction, FaultRule as KubeFaultRule } from '../../sim/kube-api/faults.ts';
import type { FaultRule as CloudFaultRule, Fault } from '../../sim/vpc/api/faults.ts';
import type { CloudStorm, KubeStorm } from './schedule.ts';

/** Whom the API server treats badly; the harness's own hands, as kubelet and person, are left alone. */
const USERS = ['system:serviceaccount:kube-system:tke-eni-agent', 'system:serviceaccount:kube-system:tke-eni-ipamd'];

const KUBE_ACTIONS: Readonly<Record<KubeStorm, readonly KubeFaultAction[]>> = {
  errors: [
    { kind: 'status', code: 500 },
    { kind: 'status', code: 503 },
    { kind: 'status', code: 504 },
  ],
  throttling: [{ kind: 'status', code: 429, retryAfterSeconds: 1 }],
  conflicts: [{ kind: 'status', code: 409 }],
  'drop-before': [{ kind: 'drop-before' }],
  'drop-after': [{ kind: 'drop-after' }],
  hang: [{ kind: 'hang' }],
  delay: [{ kind: 'delay', ms: 700 }],
  'watch-delay': [{ kind: 'watch-delay', ms: 2_000 }],
  'empty-list': [{ kind: 'empty-list' }],
};

const CLOUD_FAULTS: Readonly<Record<CloudStorm, readonly Fault[]>> = {
  throttling: [{ kind: 'error', code: 'RequestLimitExceeded' }],
  'errors-before': [
    { kind: 'error', code: 'InternalError' },
    { kind: 'error', code: 'UnsupportedOperation.MutexOperationTaskRunning' },
  ],
  'errors-after': [{ kind: 'error', code: 'InternalError', after: true }],
  gateway: [
    { kind: 'http', status: 502 },
    { kind: 'http', status: 504, after: true },
  ],
  'hang-before': [{ kind: 'hang' }],
  'hang-after': [{ kind: 'hang', after: true }],
  'reset-before': [{ kind: 'reset' }],
  'reset-after': [{ kind: 'reset', after: true }],
  stale: [{ kind: 'stale', ms: 3_000 }],
  'failing-tasks': [{ kind: 'task', fate: 'fail' }],
  'vanishing-tasks': [{ kind: 'task', fate: 'vanish' }],
  'slow-tasks': [{ kind: 'slow-task', ms: 5_000 }],
  latency: [{ kind: 'latency', ms: 1_500 }],
};

/** Turns a storm of the API server into its rules. Only watches are spared what would leave them half told. */
export function kubeRules(storm: KubeStorm, chance: number): readonly KubeFaultRule[] {
  const actions = KUBE_ACTIONS[storm];
  const share = chance / actions.length;
  // Nodes alone: that a server without claims or Pods releases what they held is what it is told to do.
  if (storm === 'empty-list')
    return [{ action: { kind: 'empty-list' }, resources: ['nodes'], verbs: ['list'], chance }];
  const verbs = storm === 'conflicts' ? { verbs: ['update', 'patch'] } : {};
  return USERS.flatMap((user) => actions.map((action) => ({ action, user, chance: share, ...verbs })));
}

/** Turns a storm of the cloud into lines of its script. */
export function cloudRules(storm: CloudStorm, chance: number): readonly CloudFaultRule[] {
  const faults = CLOUD_FAULTS[storm];
  const actions = storm === 'stale' ? { actions: ['Describe*'] } : {};
  return faults.map((fault) => ({ fault, probability: chance / faults.length, ...actions }));
}
