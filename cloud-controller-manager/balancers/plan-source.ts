import { isIPv4 } from 'node:net';
import type { LoadBalancerSpec } from '../../cloud/load-balancers.ts';
import { CLUSTER_TAG, NAMESPACE_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import { type BalancerOwner, OWNER_NAMES, ownerOf } from './balancer-owner.ts';
import type { BalancerSource } from './desired-load-balancer.ts';
import { blocking, type Notice, remark } from './notice.ts';

/** What annotations say of the load balancer itself. Absent: no annotation. */
type SourceSettings = {
  readonly subnetId?: string;
  /** Whether Ingresses share the load balancer. */
  readonly enableGroup?: boolean;
  readonly existedLbId?: string;
  readonly creation?: {
    readonly VipIsp?: NonNullable<LoadBalancerSpec['isp']>;
    readonly MasterZoneId?: string;
    readonly SlaType?: string;
    readonly Vip?: string;
  };
  readonly chargeType?: NonNullable<LoadBalancerSpec['chargeType']>;
  readonly bandwidthMbps?: number;
  readonly securityGroups?: readonly string[];
  readonly passToTarget?: boolean;
  readonly deletionProtection?: boolean;
  readonly retain?: boolean;
};

/** What the source of a load balancer is planned of. */
type SourceFacts = {
  readonly owner: Pick<BalancerOwner, 'kind' | 'namespace' | 'name' | 'uid'>;
  readonly settings: SourceSettings;
  /** `spec.loadBalancerIP`; absent: none. */
  readonly loadBalancerIp?: string;
  readonly clusterId: string;
  readonly vpcId: string;
};

/** Where a load balancer comes from; without a value one of the notices blocks. */
type SourcePlan = { readonly value?: BalancerSource; readonly notices: readonly Notice[] };

const MAX_NAME = 80;

/** Tags of TKE, and what asks for an address, by kind. */
const SOURCE_NAMES = {
  service: { uidTag: 'tke-lb-serviceuuid', vip: 'loadBalancerIP' },
  ingress: { uidTag: 'tke-lb-ingress-uuid', vip: 'Vip' },
} as const;

/** Plans where the load balancer of an owner comes from: it is made, or it exists. */
export function planSource({ owner, settings, loadBalancerIp, clusterId, vpcId }: SourceFacts): SourcePlan {
  const { subnetId, existedLbId, creation = {}, chargeType, bandwidthMbps } = settings;
  const { object, subnet, securityGroups: groups, invalid, refused } = OWNER_NAMES[owner.kind];
  const { uidTag, vip: vipName } = SOURCE_NAMES[owner.kind];
  const vip = loadBalancerIp ?? creation.Vip;
  if (vip !== undefined && (!isIPv4(vip) || (creation.Vip ?? vip) !== vip)) {
    const same = owner.kind === 'service' ? ', and the same as Vip of the annotation' : '';
    return { notices: [blocking(invalid, `${vipName} must be one IPv4 address${same}; it is ${vip}`)] };
  }
  if (existedLbId !== undefined) {
    const source = {
      ...{ kind: 'existing' as const, loadBalancerId: existedLbId, namespace: owner.namespace },
      ...(vip === undefined ? {} : { vip }),
      ...(subnetId === undefined ? {} : { subnetId }),
    };
    const { securityGroups = [], passToTarget, deletionProtection, retain } = settings;
    const unused = {
      ...{ chargeType, bandwidthMbps, creation: settings.creation, passToTarget, deletionProtection, retain },
      ...(securityGroups.length === 0 ? { securityGroups: settings.securityGroups } : {}),
    };
    // What keeps clients out is in force, or nothing is served.
    const ignored = [
      ...(securityGroups.length === 0 ? [] : [groups]),
      ...(settings.enableGroup === true && subnetId !== undefined ? [subnet] : []),
    ].map((name) =>
      blocking(
        refused,
        `the annotation ${name} is not obeyed, as ${existedLbId} exists for others too, and is not changed for this ${object}; choose a load balancer that is like that, and remove the annotation`,
      ),
    );
    const why = `${existedLbId} is not made or changed for this ${object}`;
    return { value: source, notices: [...remarkUnused(unused, why), ...ignored] };
  }
  const base = {
    name: `${clusterId}_${owner.namespace}_${owner.name}`.slice(0, MAX_NAME),
    vpcId,
    tags: {
      [OWNER_TAG]: ownerOf(clusterId, owner.uid, owner.kind),
      [CLUSTER_TAG]: clusterId,
      [NAMESPACE_TAG]: owner.namespace,
      [uidTag]: owner.uid,
    },
    ...(creation.SlaType === undefined ? {} : { slaType: creation.SlaType }),
    ...(settings.passToTarget === undefined ? {} : { passesToTarget: settings.passToTarget }),
  };
  if (subnetId !== undefined) {
    const spec = { ...base, type: 'INTERNAL' as const, subnetId, ...(vip === undefined ? {} : { vip }) };
    const unused = { chargeType, bandwidthMbps, VipIsp: creation.VipIsp, MasterZoneId: creation.MasterZoneId };
    return { value: { kind: 'own', spec }, notices: remarkUnused(unused, 'the load balancer has no public address') };
  }
  if (vip !== undefined) {
    const message = `${vipName} ${vip}: a public address cannot be chosen; name its subnet in the annotation ${subnet}, or remove it`;
    return { notices: [blocking(refused, message)] };
  }
  const open = {
    ...base,
    type: 'OPEN' as const,
    ...(chargeType === undefined ? {} : { chargeType }),
    ...(bandwidthMbps === undefined ? {} : { bandwidthMbps }),
    ...(creation.VipIsp === undefined ? {} : { isp: creation.VipIsp }),
    ...(creation.MasterZoneId === undefined ? {} : { masterZone: creation.MasterZoneId }),
  };
  return { value: { kind: 'own', spec: open }, notices: [] };
}

/** Remarks which settings have no effect. */
export function remarkUnused(settings: Readonly<Record<string, unknown>>, why: string): readonly Notice[] {
  const unused = Object.keys(settings).filter((key) => settings[key] !== undefined);
  if (unused.length === 0) return [];
  return [remark('AnnotationRefused', `${unused.join(', ')}, made by annotations, has no effect: ${why}; remove it`)];
}
