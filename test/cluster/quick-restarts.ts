/**
 * Settings of a kubelet that starts a dead container again within two seconds, however often it died: without them a test
 * that kills often would wait for minutes.
 * @see https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#configurable-container-restart-delay
 */
export const QUICK_RESTARTS = {
  featureGates: { KubeletCrashLoopBackOffMax: true },
  crashLoopBackOff: { maxContainerRestartPeriod: '2s' },
} as const;
