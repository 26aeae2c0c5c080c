import type { EventReason } from '../../kube/events/event-reason.ts';

const SERVICE = ['Service'];
const INGRESS = ['Ingress'];
/** Owners of load balancers. */
const BOTH = ['Service', 'Ingress'];
const RETRIED = 'it is tried again by itself';

/** Events of load balancers and of their owners: Services of type LoadBalancer, and Ingresses. Reasons are upstream's where the meaning is equal. */
export const BALANCER_EVENTS = {
  EnsuringLoadBalancer: {
    type: 'Normal',
    objects: BOTH,
    cause: 'a load balancer is made for the Service',
    cure: '',
  },
  EnsuredLoadBalancer: {
    type: 'Normal',
    objects: BOTH,
    cause: 'the load balancer was brought in line with the Service; the message says what was changed',
    cure: '',
  },
  UpdatedLoadBalancer: {
    type: 'Normal',
    objects: BOTH,
    cause: 'the backends of the load balancer were brought in line with the Nodes',
    cure: '',
  },
  DeletingLoadBalancer: {
    type: 'Normal',
    objects: BOTH,
    cause:
      'the Service is being deleted or is of another type: its load balancer is deleted, or its listeners of one that exists for others too',
    cure: '',
  },
  DeletedLoadBalancer: {
    type: 'Normal',
    objects: BOTH,
    cause: 'what the Service had in the cloud is gone',
    cure: '',
  },
  SyncLoadBalancerFailed: {
    type: 'Warning',
    objects: BOTH,
    cause: 'the cloud or the API server refused or did not answer; the message has the reason',
    cure: `do what the message says; ${RETRIED}`,
  },
  DeleteLoadBalancerFailed: {
    type: 'Warning',
    objects: BOTH,
    cause:
      'the load balancer could not be deleted: it is protected, or the cloud takes the deletion for a mistake; the Service stays until then',
    cure: `take the protection off, or write "false" into the annotation service.cloud.tencent.com/deletion-protection, or annotate the Service with service.cloud.tencent.com/mode=skip to leave the load balancer; ${RETRIED}`,
  },
  AnnotationInvalid: {
    type: 'Warning',
    objects: BOTH,
    cause: 'an annotation of the Service is malformed, or two contradict each other; its load balancer is not changed',
    cure: 'correct what the message names; docs/reference/service-annotations.md has the values',
  },
  AnnotationRefused: {
    type: 'Warning',
    objects: BOTH,
    cause: 'an annotation of the Service is not obeyed; the message says why',
    cure: 'do what the message says; docs/reference/service-annotations.md has all of them',
  },
  ServiceInvalid: {
    type: 'Warning',
    objects: SERVICE,
    cause: 'the spec of the Service is not readable, or contradicts itself; its load balancer is not changed',
    cure: 'correct the field that the message names',
  },
  ServiceRefused: {
    type: 'Warning',
    objects: SERVICE,
    cause:
      'the Service asks for what a load balancer cannot do here, or for more than is planned for one object: the message names it, and whether the rest is done',
    cure: 'do what the message says',
  },
  AffinityClamped: {
    type: 'Warning',
    objects: SERVICE,
    cause: 'a listener keeps a client at its backend for 30 s to an hour, and the Service asks for more or less',
    cure: 'set `sessionAffinityConfig.clientIP.timeoutSeconds` between 30 and 3600',
  },
  ServiceConfigUnused: {
    type: 'Warning',
    objects: BOTH,
    cause:
      'the TkeServiceConfig of the Service or Ingress is missing or cannot be read, so that listeners and rules keep the settings that they have; or a part of it has no effect. The message says which',
    cure: 'do what the message says; docs/reference/service-annotations.md and docs/reference/ingress-annotations.md have what is served',
  },
  ImmutableChangeRefused: {
    type: 'Warning',
    objects: BOTH,
    cause: 'what was changed means another load balancer with another address; nothing was changed',
    cure: 'take the change back, or annotate the Service with tke.cloud.tencent.com/allow-address-change=true',
  },
  ListenerClash: {
    type: 'Warning',
    objects: BOTH,
    cause: 'a listener that is not of this Service has its port on the load balancer; that port is not served',
    cure: 'remove that listener, or use another port or load balancer',
  },
  DriftFound: {
    type: 'Warning',
    objects: BOTH,
    cause:
      'somebody else changed the load balancer, its listeners or targets; the message names each field with what it was, and says whether it is set again; with `--load-balancer-drift=report` it is left',
    cure: 'change the Service instead; to change a load balancer by hand annotate the Service with service.cloud.tencent.com/mode=skip',
  },
  UnAvailableLoadBalancer: {
    type: 'Warning',
    objects: BOTH,
    cause:
      'no Node, or with direct access no ready Pod, is a backend of the load balancer, the selector of backends selects none, or no new target is healthy, so that the old ones stay',
    cure: '`tke-eni lb NAMESPACE/NAME` has the health of each target, and the security groups that drop its checks; look at the labels of the Nodes too: docs/cloud-controller-manager.md says which are backends',
  },
  TargetsOverQuota: {
    type: 'Warning',
    objects: BOTH,
    cause: 'more Nodes or Pods are backends than a listener may have targets; some of each zone are bound',
    cure: 'raise the quota, or select fewer Nodes by an annotation, or fewer Pods',
  },
  DirectAccessImpossible: {
    type: 'Warning',
    objects: BOTH,
    cause:
      'a Pod of a Service with direct access cannot be bound to its load balancer, and is not; or Pods may not be read, and nothing is changed. The message says which and why',
    cure: 'do what the message says; docs/cloud-controller-manager.md says which Pods can be bound, and the rights',
  },
  StatusForbidden: {
    type: 'Warning',
    objects: BOTH,
    cause:
      'the load balancer works, and its address cannot be written into the status: the right to patch `services/status` is missing',
    cure: 'grant it as docs/cloud-controller-manager.md says; the address is in the annotation tke.cloud.tencent.com/load-balancer-address',
  },
  OrphanLoadBalancer: {
    type: 'Warning',
    objects: ['Namespace'],
    cause:
      'a load balancer with the tags of this cluster, or a security group for source ranges, has no Service any more, as when the finalizer of the Service was removed by hand, and is not deleted; the message says why',
    cure: 'delete it in the console, or set `--delete-orphan-load-balancers`',
  },
  OrphanLoadBalancerDeleted: {
    type: 'Normal',
    objects: ['Namespace'],
    cause:
      'a load balancer or a security group that had no Service any more is deleted, with `--delete-orphan-load-balancers`',
    cure: '',
  },
  LoadBalancersKeptByOther: {
    type: 'Warning',
    objects: ['Endpoints', 'ConfigMap', 'Lease'],
    cause:
      "TKE's own service controller is at work in this cluster, as the message shows. service-lb-controller reads and changes no load balancer meanwhile",
    cure: 'set `--load-balancers=none`; if the traces are of a controller that is gone, `--tke-service-controller=ignore`',
  },
  IngressInvalid: {
    type: 'Warning',
    objects: INGRESS,
    cause: 'the spec of the Ingress is not readable, or contradicts itself; its load balancer is not changed',
    cure: 'correct what the message names',
  },
  IngressRefused: {
    type: 'Warning',
    objects: INGRESS,
    cause:
      'the Ingress asks for what a load balancer cannot do, or for more than is planned for one object, or its IngressClass is missing: the message names it, and whether the rest is done',
    cure: 'do what the message says',
  },
  BackendMissing: {
    type: 'Warning',
    objects: INGRESS,
    cause: 'the Service of a rule is missing, or its port, or the node port of that; the other rules are served',
    cure: 'make what the message names, or correct the rule',
  },
  CertificateRefused: {
    type: 'Warning',
    objects: INGRESS,
    cause:
      'a certificate of HTTPS cannot be used: its Secret is missing, may not be read or is malformed, it has expired, is of another host, or its key is another one. What the host has stays as it is',
    cure: 'do what the message says; docs/reference/ingress-annotations.md has the forms of Secrets',
  },
  CertificateExpires: {
    type: 'Warning',
    objects: INGRESS,
    cause: 'a certificate of a Secret expires in less than 14 days; it is served until then',
    cure: 'write a new certificate and its key into the Secret; it is uploaded within a minute or two',
  },
  RuleClash: {
    type: 'Warning',
    objects: INGRESS,
    cause:
      'a rule of this Ingress has the host and path of a rule of an older Ingress of the same load balancer, or another certificate for the same host; the older one is served',
    cure: 'change the host or the path, or use another load balancer',
  },
  RulesOverQuota: {
    type: 'Warning',
    objects: INGRESS,
    cause: 'a listener may have no more rules; those that the message counts are not served',
    cure: 'raise the quota of rules, or divide the rules between load balancers',
  },
} as const satisfies Readonly<Record<string, EventReason>>;
