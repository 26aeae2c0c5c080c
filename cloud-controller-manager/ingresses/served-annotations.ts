import { INGRESS_DIRECT_ACCESS_ANNOTATION } from '../../crd/foreign-names.ts';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { ServedRow } from '../services/annotation-row.ts';
import {
  cloudId,
  cloudIds,
  creationFields,
  flag,
  objectName,
  type Parsed,
  wholeNumber,
  word,
} from '../services/annotation-values.ts';
import { certificateEntries, listenPorts, mixedRules, weightTable } from './rule-annotations.ts';

const TKE = 'kubernetes.io/ingress';
const CLOUD = 'ingress.cloud.tencent.com';
const CORRECT = 'correct it or remove it';
const FLAG = '`"true"` or `"false"`';
const RULES =
  'JSON list of `host`, `path`, `pathType`, `backend` with `serviceName` and `servicePort`, and `rewrite` with `port`, `host` and `path`';

/** The annotations of an Ingress that have an effect, by the setting that they make. */
export const SERVED_ANNOTATIONS = {
  existedLbId: served({
    name: `${TKE}.existLbId`,
    means:
      'an existing load balancer of the VPC is used: only listeners and rules that were made for the Ingress are changed or deleted, and the load balancer stays when the Ingress goes',
    form: 'an id such as `lb-a1b2c3d4`',
    parse: cloudId('lb'),
    cure: 'name a load balancer of the VPC, or remove the annotation for a new one',
  }),
  enableGroup: served({
    name: `${CLOUD}/enable-group`,
    means:
      '`"true"`: several Ingresses have rules on the listeners of the load balancer of `kubernetes.io/ingress.existLbId`. A host and path that two of them have is served for the older one',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  subnetId: served({
    name: `${TKE}.subnetId`,
    means:
      'a load balancer with an address of this subnet, reached from the VPC; without it, one with a public address. A change means another address',
    form: 'an id such as `subnet-a1b2c3d4`',
    parse: cloudId('subnet'),
    cure: 'name a subnet of the VPC, or remove the annotation for a public address',
  }),
  chargeType: served({
    name: `${TKE}.internetChargeType`,
    means: 'how a public load balancer is charged; read when it is made',
    form: '`TRAFFIC_POSTPAID_BY_HOUR`, `BANDWIDTH_POSTPAID_BY_HOUR` or `BANDWIDTH_PACKAGE`',
    parse: word('TRAFFIC_POSTPAID_BY_HOUR', 'BANDWIDTH_POSTPAID_BY_HOUR', 'BANDWIDTH_PACKAGE'),
    cure: CORRECT,
  }),
  bandwidthMbps: served({
    name: `${TKE}.internetMaxBandwidthOut`,
    means: 'most Mbit/s that a public load balancer sends',
    form: '1 to 2048 in quotes',
    parse: wholeNumber(1, 2_048),
    cure: CORRECT,
  }),
  creation: served({
    name: `${TKE}.extensiveParameters`,
    means: 'further fields of the request that makes the load balancer; read when it is made',
    form: 'JSON with `VipIsp`, `MasterZoneId`, `SlaType`, `Vip`, and `AddressIPVersion` IPV4',
    parse: creationFields,
    cure: 'the other fields of CreateLoadBalancer are not passed on',
  }),
  ruleMix: served({
    name: `${TKE}.rule-mix`,
    means:
      '`"true"`: the annotations `http-rules` and `https-rules` say which rules are on HTTP and on HTTPS; rules of the spec that are in neither are on HTTPS',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  httpRules: served({
    name: `${TKE}.http-rules`,
    means: 'the rules on HTTP, with `rule-mix`',
    form: RULES,
    parse: mixedRules,
    cure: CORRECT,
  }),
  httpsRules: served({
    name: `${TKE}.https-rules`,
    means: 'the rules on HTTPS, with `rule-mix`',
    form: RULES,
    parse: mixedRules,
    cure: CORRECT,
  }),
  ruleMixBoth: served({
    name: `${TKE}.rule-mix-both`,
    means:
      '`"true"`: all rules are on HTTP and on HTTPS. Not together with `rule-mix`, `auto-rewrite`, `rewrite-support`',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  listenPorts: served({
    name: `${CLOUD}/listen-ports`,
    means:
      'the ports of the listeners of HTTP and of HTTPS; without it 80 and 443. Rules are on every port of their protocol',
    form: 'JSON such as `[{"HTTP":80},{"HTTPS":443}]`',
    parse: listenPorts,
    cure: CORRECT,
  }),
  rewriteSupport: served({
    name: `${CLOUD}/rewrite-support`,
    means:
      '`"true"`: the field `rewrite` of rules in `http-rules` and `https-rules` is a redirect to another rule of the Ingress',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  autoRewrite: served({
    name: `${CLOUD}/auto-rewrite`,
    means:
      '`"true"`: HTTP:80 redirects every host and path that HTTPS:443 serves. Without it there is no such redirect',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  autoRewriteCode: served({
    name: `${CLOUD}/auto-rewrite-code`,
    means: 'the code of redirects; without it 301',
    form: '`301`, `302` or `307` in quotes',
    parse: word('301', '302', '307'),
    cure: CORRECT,
  }),
  certificates: served({
    name: `${CLOUD}/certificate`,
    means:
      'certificates that the cloud has, for hosts; an entry without hosts is for all that have no other. Not together with `spec.tls`',
    form: 'JSON list of `hosts` and `qcloud_cert_id`, a list of one id, or of two: of RSA and of ECC',
    parse: certificateEntries,
    cure: CORRECT,
  }),
  serviceConfig: served({
    name: `${CLOUD}/tke-service-config`,
    means:
      'a TkeServiceConfig of the namespace has settings of the rules: session, health check, scheduler, protocol of the targets; of the listeners: the default domain; and the bandwidth. What it leaves out is left as it is. While it is missing or cannot be read, rules keep what they have',
    form: 'the name of one; not one that ends in `-auto-ingress-config`',
    parse: objectName,
    cure: CORRECT,
  }),
  serviceConfigAuto: served({
    name: `${CLOUD}/tke-service-config-auto`,
    means:
      '`"true"`: a TkeServiceConfig `NAME-auto-ingress-config` is made, with an entry for each path, and is used as one that is named. What people change in it stays; it goes with the Ingress',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  weights: served({
    name: `${CLOUD}/lb-rs-weight`,
    means:
      'with direct access: the weight of targets, and of single Pods of StatefulSets, by rule. A field of `key` that is left out fits all',
    form: 'JSON with `defaultWeight`, and `groups` of `key` (`proto`, `port`, `host`, `path`) and `statefulSets`',
    parse: weightTable,
    cure: CORRECT,
  }),
  directAccess: served({
    name: INGRESS_DIRECT_ACCESS_ANNOTATION,
    means:
      '`"true"`: Pods are the backends, by their own addresses; no node ports are needed. It may be changed at any time',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  drainsLeaving: served({
    name: `${CLOUD}/enable-grace-shutdown`,
    means:
      'with direct access: a Pod that is being deleted has weight 0 until it is gone; so it is without the annotation. `"false"`: it has weight 0 and is deregistered a minute later',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  drainsUnready: served({
    name: `${CLOUD}/enable-grace-shutdown-tkex`,
    means:
      'with direct access: `"true"`: a Pod that is not ready any more has weight 0 as long as it is there. Without it, it has weight 0 and is deregistered a minute later',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  securityGroups: served({
    name: `${CLOUD}/security-groups`,
    means:
      'the security groups of the load balancer; the empty text takes all off. Without the annotation they stay as they are',
    form: 'at most five ids such as `sg-a1b2c3d4`, with commas',
    parse: cloudIds('sg'),
    cure: CORRECT,
  }),
  passToTarget: served({
    name: `${CLOUD}/pass-to-target`,
    means:
      '`"true"`: the security groups of the load balancer decide alone, those of the nodes need no rule for its requests',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  mode: served({
    name: `${CLOUD}/mode`,
    means: '`skip`: the load balancer is not changed, and stays when the Ingress goes',
    form: '`skip`',
    parse: word('skip'),
    cure: 'remove it for a load balancer that follows the Ingress',
  }),
  deletionProtection: served({
    name: `${CLOUD}/deletion-protection`,
    means:
      '`"true"`: the cloud refuses to delete the load balancer, also when the Ingress is deleted, which waits then; `"false"`: it does not. Without the annotation it is as it is',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  retain: served({
    name: `${CLOUD}/loadbalance-retain`,
    means: '`"true"`: the load balancer stays when the Ingress goes, without the listeners of the Ingress',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
  allowAddressChange: served({
    name: SERVICE_ANNOTATION.allowAddressChange,
    means:
      '`"true"`: a change that needs another load balancer is made; the address of the Ingress changes, and connections end. Without it such a change is reported, and nothing changes',
    form: FLAG,
    parse: flag,
    cure: CORRECT,
  }),
} as const;

/** The settings of an Ingress; absent: no annotation. */
export type IngressSettings = {
  readonly [K in keyof typeof SERVED_ANNOTATIONS]?: Extract<
    ReturnType<(typeof SERVED_ANNOTATIONS)[K]['parse']>,
    { readonly kind: 'value' }
  >['value'];
};

function served<T>(row: Omit<ServedRow<T>, 'outcome'>): ServedRow<T> & { readonly parse: (text: string) => Parsed<T> } {
  return { ...row, outcome: 'served' };
}
