import type { ServedRow, SettingsOfRows } from '../services/annotation-table.ts';
import { word } from '../services/annotation-values.ts';
import { CORRECT, flagRow, ownerAnnotations } from '../services/owner-annotations.ts';
import { certificateEntries, listenPorts, mixedRules, weightTable } from './rule-annotations.ts';

const TKE = 'kubernetes.io/ingress';
const CLOUD = 'ingress.cloud.tencent.com';
const RULES =
  'JSON list of `host`, `path`, `pathType`, `backend` with `serviceName` and `servicePort`, and `rewrite` with `port`, `host` and `path`';

const OF_BOTH = ownerAnnotations('ingress');

/** The annotations of an Ingress that have an effect, by the setting that they make; in the order of the documents. */
export const SERVED_ANNOTATIONS = {
  existedLbId: OF_BOTH.existedLbId,
  enableGroup: flagRow(
    `${CLOUD}/enable-group`,
    '`"true"`: several Ingresses have rules on the listeners of the load balancer of `kubernetes.io/ingress.existLbId`. A host and path that two of them have is served for the older one',
  ),
  subnetId: OF_BOTH.subnetId,
  chargeType: OF_BOTH.chargeType,
  bandwidthMbps: OF_BOTH.bandwidthMbps,
  creation: OF_BOTH.creation,
  ruleMix: flagRow(
    `${TKE}.rule-mix`,
    '`"true"`: the annotations `http-rules` and `https-rules` say which rules are on HTTP and on HTTPS; rules of the spec that are in neither are on HTTPS',
  ),
  httpRules: {
    name: `${TKE}.http-rules`,
    means: 'the rules on HTTP, with `rule-mix`',
    form: RULES,
    parse: mixedRules,
    cure: CORRECT,
  },
  httpsRules: {
    name: `${TKE}.https-rules`,
    means: 'the rules on HTTPS, with `rule-mix`',
    form: RULES,
    parse: mixedRules,
    cure: CORRECT,
  },
  ruleMixBoth: flagRow(
    `${TKE}.rule-mix-both`,
    '`"true"`: all rules are on HTTP and on HTTPS. Not together with `rule-mix`, `auto-rewrite`, `rewrite-support`',
  ),
  listenPorts: {
    name: `${CLOUD}/listen-ports`,
    means:
      'the ports of the listeners of HTTP and of HTTPS; without it 80 and 443. Rules are on every port of their protocol',
    form: 'JSON such as `[{"HTTP":80},{"HTTPS":443}]`',
    parse: listenPorts,
    cure: CORRECT,
  },
  rewriteSupport: flagRow(
    `${CLOUD}/rewrite-support`,
    '`"true"`: the field `rewrite` of rules in `http-rules` and `https-rules` is a redirect to another rule of the Ingress',
  ),
  autoRewrite: flagRow(
    `${CLOUD}/auto-rewrite`,
    '`"true"`: HTTP:80 redirects every host and path that HTTPS:443 serves. Without it there is no such redirect',
  ),
  autoRewriteCode: {
    name: `${CLOUD}/auto-rewrite-code`,
    means: 'the code of redirects; without it 301',
    form: '`301`, `302` or `307` in quotes',
    parse: word('301', '302', '307'),
    cure: CORRECT,
  },
  certificates: {
    name: `${CLOUD}/certificate`,
    means:
      'certificates that the cloud has, for hosts; an entry without hosts is for all that have no other. Not together with `spec.tls`',
    form: 'JSON list of `hosts` and `qcloud_cert_id`, a list of one id, or of two: of RSA and of ECC',
    parse: certificateEntries,
    cure: CORRECT,
  },
  serviceConfig: OF_BOTH.serviceConfig,
  serviceConfigAuto: OF_BOTH.serviceConfigAuto,
  weights: {
    name: `${CLOUD}/lb-rs-weight`,
    means:
      'with direct access: the weight of targets, and of single Pods of StatefulSets, by rule. A field of `key` that is left out fits all',
    form: 'JSON with `defaultWeight`, and `groups` of `key` (`proto`, `port`, `host`, `path`) and `statefulSets`',
    parse: weightTable,
    cure: CORRECT,
  },
  directAccess: OF_BOTH.directAccess,
  drainsLeaving: OF_BOTH.drainsLeaving,
  drainsUnready: OF_BOTH.drainsUnready,
  securityGroups: OF_BOTH.securityGroups,
  passToTarget: OF_BOTH.passToTarget,
  mode: OF_BOTH.mode,
  deletionProtection: OF_BOTH.deletionProtection,
  retain: OF_BOTH.retain,
  allowAddressChange: OF_BOTH.allowAddressChange,
} as const satisfies Readonly<Record<string, ServedRow<unknown>>>;

/** The settings of an Ingress; absent: no annotation. */
export type IngressSettings = SettingsOfRows<typeof SERVED_ANNOTATIONS>;
