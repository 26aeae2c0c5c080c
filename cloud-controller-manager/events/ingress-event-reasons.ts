import type { EventReason } from '../../kube/events/event-reason.ts';

const INGRESS = ['Ingress'];

/** Events of Ingresses alone; those of their load balancers are the same as of Services. */
export const INGRESS_EVENTS = {
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
