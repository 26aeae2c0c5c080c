/**
 * What a user of a Service or an Ingress has to know, and what becomes of the load balancer meanwhile. `blocks`: nothing of it is
 * changed, as what is asked for cannot be done, and something else would do harm.
 */
export type Notice = { readonly reason: NoticeReason; readonly message: string; readonly blocks: boolean };

/** Reasons of notices; events have the same. */
export type NoticeReason =
  | 'AnnotationInvalid'
  | 'AnnotationRefused'
  | 'ServiceInvalid'
  | 'ServiceRefused'
  | 'IngressInvalid'
  | 'IngressRefused'
  | 'BackendMissing'
  | 'CertificateRefused'
  | 'CertificateExpires'
  | 'RuleClash'
  | 'RulesOverQuota'
  | 'AffinityClamped'
  | 'ServiceConfigUnused'
  | 'ImmutableChangeRefused'
  | 'ListenerClash'
  | 'DriftFound'
  | 'UnAvailableLoadBalancer'
  | 'DirectAccessImpossible'
  | 'TargetsOverQuota'
  | 'SyncLoadBalancerFailed';

/** Makes a notice that leaves the load balancer as it is. */
export function blocking(reason: NoticeReason, message: string): Notice {
  return { reason, message, blocks: true };
}

/** Makes a notice; what it does not concern is done. */
export function remark(reason: NoticeReason, message: string): Notice {
  return { reason, message, blocks: false };
}
