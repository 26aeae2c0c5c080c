import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { ServedRow, SettingsOfRows } from './annotation-table.ts';
import { networks, poolName, selector, word } from './annotation-values.ts';
import { CORRECT, flagRow, ownerAnnotations } from './owner-annotations.ts';

const OF_BOTH = ownerAnnotations('service');

/** The annotations of a Service that have an effect, by the setting that they make; in the order of the documents. */
export const SERVED_ANNOTATIONS = {
  existedLbId: OF_BOTH.existedLbId,
  subnetId: OF_BOTH.subnetId,
  chargeType: OF_BOTH.chargeType,
  bandwidthMbps: OF_BOTH.bandwidthMbps,
  creation: OF_BOTH.creation,
  balancerType: {
    name: 'service.kubernetes.io/loadbalance-type',
    means: 'the kind of the load balancer; `classic` ones are not made any more',
    form: '`application`',
    parse: word('application'),
    cure: 'remove it',
  },
  backendSelector: {
    name: 'service.kubernetes.io/qcloud-loadbalancer-backends-label',
    means:
      'only Nodes with these labels are backends. One that selects no Node is reported, and the backends stay as they are',
    form: 'a label selector such as `pool=edge`, `pool in (edge,front)`',
    parse: selector,
    cure: CORRECT,
  },
  securityGroups: OF_BOTH.securityGroups,
  passToTarget: OF_BOTH.passToTarget,
  mode: OF_BOTH.mode,
  preventLoopback: flagRow(
    'service.cloud.tencent.com/prevent-loopback',
    '`"false"`: kube-proxy sends connections of the cluster to the load balancer (ipMode Proxy). Else it serves them itself (ipMode VIP), so that no client is its own backend',
  ),
  sourceRanges: {
    name: 'service.beta.kubernetes.io/load-balancer-source-ranges',
    means:
      'the same as `spec.loadBalancerSourceRanges`, which has precedence: clients of these networks alone may connect. A security group is made for it, and goes with it. It is not for an existing load balancer, and has no effect beside `service.cloud.tencent.com/security-groups`',
    form: 'IPv4 networks with commas; 0.0.0.0/0 or the empty text is everyone',
    parse: networks,
    cure: CORRECT,
  },
  directAccess: OF_BOTH.directAccess,
  serviceConfig: OF_BOTH.serviceConfig,
  serviceConfigAuto: OF_BOTH.serviceConfigAuto,
  pool: {
    name: SERVICE_ANNOTATION.pool,
    means:
      'the Service shares load balancers with the other Services of this pool: they are made as they are needed, each with as many listeners as the quota allows, and deleted when they are empty. What a load balancer is like (subnet, charge, bandwidth) is read when one is made; a Service that asks for another subnet gets one in it',
    form: 'a name of at most 32 characters such as `shared`',
    parse: poolName,
    cure: CORRECT,
  },
  poolPorts: {
    name: SERVICE_ANNOTATION.poolPorts,
    means:
      'ports on a load balancer of a pool. `kept`, the default: those of the Service, on a load balancer where they are free. `allotted`: free ones from 10000 to 29999, which the annotation `tke.cloud.tencent.com/load-balancer-record` has',
    form: '`kept` or `allotted`',
    parse: word('kept', 'allotted'),
    cure: CORRECT,
  },
  deletionProtection: OF_BOTH.deletionProtection,
  retain: OF_BOTH.retain,
  drainsLeaving: OF_BOTH.drainsLeaving,
  drainsUnready: OF_BOTH.drainsUnready,
  allowAddressChange: OF_BOTH.allowAddressChange,
} as const satisfies Readonly<Record<string, ServedRow<unknown>>>;

/** A setting that an annotation of a Service makes. */
export type SettingKey = keyof typeof SERVED_ANNOTATIONS;

/** The settings of a Service; absent: no annotation. */
export type ServiceSettings = SettingsOfRows<typeof SERVED_ANNOTATIONS>;
