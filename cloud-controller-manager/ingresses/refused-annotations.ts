import type { RefusedRow } from '../services/annotation-table.ts';
import { refused, refusedOwnerAnnotations } from '../services/owner-annotations.ts';

const CLOUD = 'ingress.cloud.tencent.com';
const TKE = 'kubernetes.io/ingress';
const NOT_FILTERED = 'the load balancer does not look at clients; the security groups of the load balancer do';
const NO_LOGIN = 'the load balancer asks nobody who he is';
const NO_LIMIT = 'the load balancer has no limit for clients';

const OF_BOTH = refusedOwnerAnnotations('ingress');

/** What TKE's controller of Ingresses obeys and this one does not. */
export const REFUSED_ANNOTATIONS: readonly RefusedRow[] = [
  refused({
    name: `${CLOUD}/mix-target-prefer`,
    means: 'backends are Pods where they have addresses of the VPC, and else Nodes',
    why: 'the backends of an Ingress are all Pods or all Nodes',
    instead: `set ${CLOUD}/direct-access`,
  }),
  OF_BOTH.enableGraceDeletion,
  OF_BOTH.modificationProtection,
  OF_BOTH.crossRegion,
  OF_BOTH.crossVpc,
  ...ofOthers('keeps clients out', NOT_FILTERED, `set ${CLOUD}/security-groups`, [
    'nginx.ingress.kubernetes.io/whitelist-source-range',
    'nginx.ingress.kubernetes.io/denylist-source-range',
    'haproxy.org/allow-list',
    'haproxy.org/whitelist',
    'alb.ingress.kubernetes.io/inbound-cidrs',
    'alb.ingress.kubernetes.io/security-groups',
  ]),
  ...ofOthers(
    'makes the load balancer an internal one',
    'it is an annotation of another controller',
    `set ${TKE}.subnetId`,
    ['alb.ingress.kubernetes.io/scheme', 'kubernetes.io/ingress.regional-static-ip-name'],
  ),
  ...ofOthers('asks for a login', NO_LOGIN, 'let the backend ask', [
    'nginx.ingress.kubernetes.io/auth-type',
    'nginx.ingress.kubernetes.io/auth-url',
    'haproxy.org/auth-type',
    'alb.ingress.kubernetes.io/auth-type',
    'traefik.ingress.kubernetes.io/router.middlewares',
  ]),
  ...ofOthers(
    'asks clients for certificates',
    'it is an annotation of another controller',
    'name the authority as qcloud_ca_cert_id in the Secret',
    ['nginx.ingress.kubernetes.io/auth-tls-secret', 'alb.ingress.kubernetes.io/mutual-authentication'],
  ),
  ...ofOthers('limits what a client may ask', NO_LIMIT, 'let the backend limit it', [
    'nginx.ingress.kubernetes.io/limit-rps',
    'nginx.ingress.kubernetes.io/limit-rpm',
    'nginx.ingress.kubernetes.io/limit-connections',
    'haproxy.org/rate-limit-requests',
  ]),
];

/** Annotations of other controllers that narrow access: what people relied on is not passed over in silence. */
function ofOthers(means: string, why: string, instead: string, names: readonly string[]): readonly RefusedRow[] {
  return names.map((name) => refused({ name, means, why, instead, neutral: [] }));
}
