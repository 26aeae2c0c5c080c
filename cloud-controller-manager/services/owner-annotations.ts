import { INGRESS_DIRECT_ACCESS_ANNOTATION } from '../../crd/foreign-names.ts';
import { DIRECT_ACCESS_ANNOTATION, SERVICE_ANNOTATION } from '../../crd/names.ts';
import { OWNER_NAMES, type OwnerKind } from '../balancers/balancer-owner.ts';
import type { RefusedRow, ServedRow, WrittenRow } from './annotation-table.ts';
import { cloudId, cloudIds, creationFields, flag, objectName, wholeNumber, word } from './annotation-values.ts';

/** What an error says of an annotation that may be removed as well. */
export const CORRECT = 'correct it or remove it';

/** Returns the annotations that Services and Ingresses both have and that have an effect, as one kind of them has them. */
export function ownerAnnotations(kind: OwnerKind) {
  return { ...rowsOfSource(kind), ...rowsOfSettings(kind) };
}

/** What says which load balancer it is. */
function rowsOfSource(kind: OwnerKind) {
  const of = wordsOf(kind);
  const { object, existing, subnet } = OWNER_NAMES[kind];
  const older = (name: string): Pick<ServedRow<unknown>, 'olderNames'> =>
    kind === 'service' ? { olderNames: [name] } : {};
  const label: Pick<ServedRow<unknown>, 'isLabelToo'> = kind === 'service' ? { isLabelToo: true } : {};
  return {
    existedLbId: {
      name: existing,
      means: `an existing load balancer of the VPC is used: only ${of('listeners', 'listeners and rules')} that were made for the ${object} are changed or deleted, and the load balancer stays when the ${object} goes${of('. To change it on a Service that has a load balancer means another address', '')}`,
      form: 'an id such as `lb-a1b2c3d4`',
      parse: cloudId('lb'),
      cure: 'name a load balancer of the VPC, or remove the annotation for a new one',
    },
    subnetId: {
      name: subnet,
      means:
        'a load balancer with an address of this subnet, reached from the VPC; without it, one with a public address. A change means another address',
      form: 'an id such as `subnet-a1b2c3d4`',
      parse: cloudId('subnet'),
      cure: 'name a subnet of the VPC, or remove the annotation for a public address',
      ...label,
    },
    chargeType: {
      name: of(
        'service.kubernetes.io/qcloud-loadbalancer-internet-charge-type',
        'kubernetes.io/ingress.internetChargeType',
      ),
      ...older('kubernetes.io/service.internetChargeType'),
      means: 'how a public load balancer is charged; read when it is made',
      form: '`TRAFFIC_POSTPAID_BY_HOUR`, `BANDWIDTH_POSTPAID_BY_HOUR` or `BANDWIDTH_PACKAGE`',
      parse: word('TRAFFIC_POSTPAID_BY_HOUR', 'BANDWIDTH_POSTPAID_BY_HOUR', 'BANDWIDTH_PACKAGE'),
      cure: CORRECT,
      ...label,
    },
    bandwidthMbps: {
      name: of(
        'service.kubernetes.io/qcloud-loadbalancer-internet-max-bandwidth-out',
        'kubernetes.io/ingress.internetMaxBandwidthOut',
      ),
      ...older('kubernetes.io/service.internetMaxBandwidthOut'),
      means: `most Mbit/s that a public load balancer sends${of('; read when it is made', '')}`,
      form: '1 to 2048 in quotes',
      parse: wholeNumber(1, 2_048),
      cure: CORRECT,
      ...label,
    },
    creation: {
      name: of('service.kubernetes.io/service.extensiveParameters', 'kubernetes.io/ingress.extensiveParameters'),
      ...older('service.kubernetes.io/extensiveParameters'),
      means: 'further fields of the request that makes the load balancer; read when it is made',
      form: 'JSON with `VipIsp`, `MasterZoneId`, `SlaType`, `Vip`, and `AddressIPVersion` IPV4',
      parse: creationFields,
      cure: 'the other fields of CreateLoadBalancer are not passed on',
    },
  };
}

/** What says how it is, and what its targets are. */
function rowsOfSettings(kind: OwnerKind) {
  const of = wordsOf(kind);
  const { object, mode, securityGroups } = OWNER_NAMES[kind];
  const cloud = `${kind}.cloud.tencent.com`;
  return {
    securityGroups: {
      name: securityGroups,
      means:
        'the security groups of the load balancer; the empty text takes all off. Without the annotation they stay as they are',
      form: 'at most five ids such as `sg-a1b2c3d4`, with commas',
      parse: cloudIds('sg'),
      cure: CORRECT,
    },
    passToTarget: flagRow(
      `${cloud}/pass-to-target`,
      `\`"true"\`: the security groups of the load balancer decide alone, those of the nodes need no rule for ${of('the clients', 'its requests')}`,
    ),
    mode: {
      name: mode,
      means: `\`skip\`: the load balancer is not changed, and stays when the ${object} goes`,
      form: '`skip`',
      parse: word('skip'),
      cure: `remove it for a load balancer that follows the ${object}`,
    },
    directAccess: flagRow(
      of(DIRECT_ACCESS_ANNOTATION, INGRESS_DIRECT_ACCESS_ANNOTATION),
      of(
        '`"true"`: Pods are the backends, by their own addresses, and see the address of the client; no node ports are needed. It may be changed at any time: the new backends are registered before the old ones are drained',
        '`"true"`: Pods are the backends, by their own addresses; no node ports are needed. It may be changed at any time',
      ),
    ),
    serviceConfig: {
      name: `${cloud}/tke-service-config`,
      means: `a TkeServiceConfig of the namespace has settings of the ${of(
        'listeners: session, health check, scheduler, and the bandwidth',
        'rules: session, health check, scheduler, protocol of the targets; of the listeners: the default domain; and the bandwidth',
      )}. What it leaves out is left as it is. While it is missing or cannot be read, ${of('listeners', 'rules')} keep what they have`,
      form: `the name of one; not one that ends in \`-auto-${kind}-config\``,
      parse: objectName,
      cure: CORRECT,
    },
    serviceConfigAuto: flagRow(
      `${cloud}/tke-service-config-auto`,
      `\`"true"\`: a TkeServiceConfig \`NAME-auto-${kind}-config\` is made, with an entry for each ${of('listener', 'path')}, and is used as one that is named. What people change in it stays; it goes with the ${object}`,
    ),
    deletionProtection: flagRow(
      `${cloud}/deletion-protection`,
      `\`"true"\`: the cloud refuses to delete the load balancer, also when the ${object} is deleted, which waits then; \`"false"\`: it does not. Without the annotation it is as it is`,
    ),
    retain: flagRow(
      `${cloud}/loadbalance-retain`,
      `\`"true"\`: the load balancer stays when the ${object} goes, without the listeners of the ${object}${of('. It is protected against deletion then, its name begins with `kept_`, and another Service of the namespace may name it in `service.kubernetes.io/tke-existed-lbid`', '')}`,
    ),
    drainsLeaving: flagRow(
      `${cloud}/enable-grace-shutdown`,
      'with direct access: a Pod that is being deleted has weight 0 until it is gone; so it is without the annotation. `"false"`: it has weight 0 and is deregistered a minute later',
    ),
    drainsUnready: flagRow(
      `${cloud}/enable-grace-shutdown-tkex`,
      'with direct access: `"true"`: a Pod that is not ready any more has weight 0 as long as it is there. Without it, it has weight 0 and is deregistered a minute later',
    ),
    allowAddressChange: flagRow(
      SERVICE_ANNOTATION.allowAddressChange,
      `\`"true"\`: a change that needs another load balancer is made; the address of the ${object} changes, and connections end. Without it such a change is reported, and nothing changes`,
    ),
  };
}

/** Returns what chooses among the texts of both kinds. */
function wordsOf(kind: OwnerKind): (service: string, ingress: string) => string {
  return (service, ingress) => (kind === 'service' ? service : ingress);
}

/** Returns the row of an annotation that is "true" or "false". */
export function flagRow(name: string, means: string): ServedRow<boolean> {
  return { name, means, form: '`"true"` or `"false"`', parse: flag, cure: CORRECT };
}

const ONE_VPC = 'load balancer and backends are in the VPC of the cluster';

/** Returns what TKE obeys of Services and of Ingresses and this program does not. */
export function refusedOwnerAnnotations(kind: OwnerKind) {
  const cloud = `${kind}.cloud.tencent.com`;
  return {
    enableGraceDeletion: refused({
      name: `${cloud}/enable-grace-deletion`,
      means: 'the deletion of a Pod waits for weight 0',
      why: "it needs TKE's kubelet: no other one waits before it stops containers",
      instead: 'let containers serve on for some seconds by a preStop hook, and remove it',
    }),
    modificationProtection: refused({
      name: `${cloud}/modification-protection`,
      means: 'the console does not let people change the load balancer',
      why: 'the API of load balancers has no call for it',
      instead: 'switch it on in the console, and remove it here',
    }),
    crossRegion: refusedPlace(`${cloud}/cross-region-id`, 'the load balancer is in another region'),
    crossVpc: refusedPlace(`${cloud}/cross-vpc-id`, 'the load balancer is in another VPC'),
  };
}

/** Returns the row of an annotation by which load balancer or backends would be elsewhere. */
export function refusedPlace(name: string, means: string): RefusedRow {
  return refused({ name, means, why: ONE_VPC, blocks: true, neutral: [] });
}

/** Returns the row of an annotation that is not obeyed. */
export function refused({
  instead = 'remove it',
  blocks = false,
  neutral = ['false'],
  ...row
}: Pick<RefusedRow, 'name' | 'means' | 'why'> & Partial<RefusedRow>): RefusedRow {
  return { ...row, instead, blocks, neutral };
}

/** Returns the annotations that the controller writes. */
export function writtenAnnotations(kind: OwnerKind, idAnnotation: string): readonly WrittenRow[] {
  const of = wordsOf(kind);
  return [
    { name: idAnnotation, means: 'the id of the load balancer' },
    {
      name: SERVICE_ANNOTATION.address,
      means: `the address or the domain of the load balancer, where the status of ${of('Services', 'Ingresses')} may not be written, too`,
    },
    {
      name: SERVICE_ANNOTATION.record,
      means: of(
        'how the load balancer was made, whether a security group for source ranges was begun, and while nothing changes a hash of what is in force; without it, they are found by their tags',
        'how the load balancer was made, and while nothing changes a hash of what is in force; without it, the load balancer is found by its tags',
      ),
    },
  ];
}
