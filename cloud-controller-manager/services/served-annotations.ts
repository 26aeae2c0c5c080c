import { DIRECT_ACCESS_ANNOTATION, SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { ServedRow } from './annotation-row.ts';
import {
  cloudId,
  cloudIds,
  creationFields,
  flag,
  networks,
  objectName,
  type Parsed,
  poolName,
  selector,
  wholeNumber,
  word,
} from './annotation-values.ts';

const TKE = 'service.kubernetes.io';
const CLOUD = 'service.cloud.tencent.com';
const CORRECT = 'correct it or remove it';

/** The annotations of a Service that have an effect, by the setting that they make. */
export const SERVED_ANNOTATIONS = {
  existedLbId: served({
    name: `${TKE}/tke-existed-lbid`,
    means:
      'an existing load balancer of the VPC is used: only listeners that were made for the Service are changed or deleted, and the load balancer stays when the Service goes. To change it on a Service that has a load balancer means another address',
    form: 'an id such as `lb-a1b2c3d4`',
    parse: cloudId('lb'),
    cure: 'name a load balancer of the VPC, or remove the annotation for a new one',
  }),
  subnetId: served({
    name: `${TKE}/qcloud-loadbalancer-internal-subnetid`,
    means:
      'a load balancer with an address of this subnet, reached from the VPC; without it, one with a public address. A change means another address',
    form: 'an id such as `subnet-a1b2c3d4`',
    parse: cloudId('subnet'),
    cure: 'name a subnet of the VPC, or remove the annotation for a public address',
    isLabelToo: true,
  }),
  chargeType: served({
    name: `${TKE}/qcloud-loadbalancer-internet-charge-type`,
    olderNames: ['kubernetes.io/service.internetChargeType'],
    means: 'how a public load balancer is charged; read when it is made',
    form: '`TRAFFIC_POSTPAID_BY_HOUR`, `BANDWIDTH_POSTPAID_BY_HOUR` or `BANDWIDTH_PACKAGE`',
    parse: word('TRAFFIC_POSTPAID_BY_HOUR', 'BANDWIDTH_POSTPAID_BY_HOUR', 'BANDWIDTH_PACKAGE'),
    cure: CORRECT,
    isLabelToo: true,
  }),
  bandwidthMbps: served({
    name: `${TKE}/qcloud-loadbalancer-internet-max-bandwidth-out`,
    olderNames: ['kubernetes.io/service.internetMaxBandwidthOut'],
    means: 'most Mbit/s that a public load balancer sends; read when it is made',
    form: '1 to 2048 in quotes',
    parse: wholeNumber(1, 2_048),
    cure: CORRECT,
    isLabelToo: true,
  }),
  creation: served({
    name: `${TKE}/service.extensiveParameters`,
    olderNames: [`${TKE}/extensiveParameters`],
    means: 'further fields of the request that makes the load balancer; read when it is made',
    form: 'JSON with `VipIsp`, `MasterZoneId`, `SlaType`, `Vip`, and `AddressIPVersion` IPV4',
    parse: creationFields,
    cure: 'the other fields of CreateLoadBalancer are not passed on',
  }),
  balancerType: served({
    name: `${TKE}/loadbalance-type`,
    means: 'the kind of the load balancer; `classic` ones are not made any more',
    form: '`application`',
    parse: word('application'),
    cure: 'remove it',
  }),
  backendSelector: served({
    name: `${TKE}/qcloud-loadbalancer-backends-label`,
    means:
      'only Nodes with these labels are backends. One that selects no Node is reported, and the backends stay as they are',
    form: 'a label selector such as `pool=edge`, `pool in (edge,front)`',
    parse: selector,
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
      '`"true"`: the security groups of the load balancer decide alone, those of the nodes need no rule for the clients',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
  mode: served({
    name: `${CLOUD}/mode`,
    means: '`skip`: the load balancer is not changed, and stays when the Service goes',
    form: '`skip`',
    parse: word('skip'),
    cure: 'remove it for a load balancer that follows the Service',
  }),
  preventLoopback: served({
    name: `${CLOUD}/prevent-loopback`,
    means:
      '`"false"`: kube-proxy sends connections of the cluster to the load balancer (ipMode Proxy). Else it serves them itself (ipMode VIP), so that no client is its own backend',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
  sourceRanges: served({
    name: 'service.beta.kubernetes.io/load-balancer-source-ranges',
    means:
      'the same as `spec.loadBalancerSourceRanges`, which has precedence: clients of these networks alone may connect. A security group is made for it, and goes with it. It is not for an existing load balancer, and has no effect beside `service.cloud.tencent.com/security-groups`',
    form: 'IPv4 networks with commas; 0.0.0.0/0 or the empty text is everyone',
    parse: networks,
    cure: CORRECT,
  }),
  directAccess: served({
    name: DIRECT_ACCESS_ANNOTATION,
    means:
      '`"true"`: Pods are the backends, by their own addresses, and see the address of the client; no node ports are needed. It may be changed at any time: the new backends are registered before the old ones are drained',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
  serviceConfig: served({
    name: `${CLOUD}/tke-service-config`,
    means:
      'a TkeServiceConfig of the namespace has settings of the listeners: session, health check, scheduler, and the bandwidth. What it leaves out is left as it is. While it is missing or cannot be read, listeners keep what they have',
    form: 'the name of one; not one that ends in `-auto-service-config`',
    parse: objectName,
    cure: CORRECT,
  }),
  serviceConfigAuto: served({
    name: `${CLOUD}/tke-service-config-auto`,
    means:
      '`"true"`: a TkeServiceConfig `NAME-auto-service-config` is made, with an entry for each listener, and is used as one that is named. What people change in it stays; it goes with the Service',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
  pool: served({
    name: SERVICE_ANNOTATION.pool,
    means:
      'the Service shares load balancers with the other Services of this pool: they are made as they are needed, each with as many listeners as the quota allows, and deleted when they are empty. What a load balancer is like (subnet, charge, bandwidth) is read when one is made; a Service that asks for another subnet gets one in it',
    form: 'a name of at most 32 characters such as `shared`',
    parse: poolName,
    cure: CORRECT,
  }),
  poolPorts: served({
    name: SERVICE_ANNOTATION.poolPorts,
    means:
      'ports on a load balancer of a pool. `kept`, the default: those of the Service, on a load balancer where they are free. `allotted`: free ones from 10000 to 29999, which the annotation `tke.cloud.tencent.com/load-balancer-record` has',
    form: '`kept` or `allotted`',
    parse: word('kept', 'allotted'),
    cure: CORRECT,
  }),
  deletionProtection: served({
    name: `${CLOUD}/deletion-protection`,
    means:
      '`"true"`: the cloud refuses to delete the load balancer, also when the Service is deleted, which waits then; `"false"`: it does not. Without the annotation it is as it is',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
  retain: served({
    name: `${CLOUD}/loadbalance-retain`,
    means:
      '`"true"`: the load balancer stays when the Service goes, without the listeners of the Service. It is protected against deletion then, its name begins with `kept_`, and another Service of the namespace may name it in `service.kubernetes.io/tke-existed-lbid`',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
  drainsLeaving: served({
    name: `${CLOUD}/enable-grace-shutdown`,
    means:
      'with direct access: a Pod that is being deleted has weight 0 until it is gone; so it is without the annotation. `"false"`: it has weight 0 and is deregistered a minute later',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
  drainsUnready: served({
    name: `${CLOUD}/enable-grace-shutdown-tkex`,
    means:
      'with direct access: `"true"`: a Pod that is not ready any more has weight 0 as long as it is there. Without it, it has weight 0 and is deregistered a minute later',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
  allowAddressChange: served({
    name: SERVICE_ANNOTATION.allowAddressChange,
    means:
      '`"true"`: a change that needs another load balancer is made; the address of the Service changes, and connections end. Without it such a change is reported, and nothing changes',
    form: '`"true"` or `"false"`',
    parse: flag,
    cure: CORRECT,
  }),
} as const;

/** A setting that an annotation of a Service makes. */
export type SettingKey = keyof typeof SERVED_ANNOTATIONS;

/** The settings of a Service; absent: no annotation. */
export type ServiceSettings = {
  readonly [K in SettingKey]?: Extract<
    ReturnType<(typeof SERVED_ANNOTATIONS)[K]['parse']>,
    { readonly kind: 'value' }
  >['value'];
};

function served<T>(row: Omit<ServedRow<T>, 'outcome'>): ServedRow<T> & { readonly parse: (text: string) => Parsed<T> } {
  return { ...row, outcome: 'served' };
}
