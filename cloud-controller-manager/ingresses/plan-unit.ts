import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { StatusAddress } from '../balancers/balancer-owner.ts';
import type { BalancerSource, DesiredLoadBalancer } from '../balancers/desired-load-balancer.ts';
import type { OwnerPlan } from '../balancers/owner-plan.ts';
import { placeCertificates } from './place-certificates.ts';
import { planGroup } from './plan-group.ts';
import type { IngressPlan } from './plan-ingress.ts';
import type { IngressHead } from './read-ingress.ts';
import type { IngressSettings } from './served-annotations.ts';

/** What a single Ingress asks for, and what is known of it. */
type UnitFacts = {
  readonly plan: IngressPlan;
  readonly head: IngressHead;
  readonly settings: IngressSettings;
  /** Ids of certificates, by hash. */
  readonly ids: ReadonlyMap<string, string>;
  /** Ids of certificates that may not be named; absent: none. */
  readonly refused?: ReadonlySet<string>;
  readonly listenerName: string;
  readonly maxRules?: number;
};

/** The cloud's quota, where it does not say. */
export const MAX_RULES = 50;

/** Plans the load balancer of a single Ingress. Its notices are those about the number of rules. */
export function planUnit({ plan, head, settings, ids, refused, listenerName, maxRules }: UnitFacts): OwnerPlan {
  const { desired, listeners, unbound, afterMs } = plan;
  const rest = {
    ...(unbound === undefined ? {} : { unbound }),
    ...(afterMs === undefined ? {} : { afterMs }),
  };
  if (listeners === undefined) return { ...rest, notices: [] };
  const claim = { ingress: head, isGrouped: false, listeners };
  const { listeners: granted, noticesOf } = planGroup([claim], maxRules ?? MAX_RULES);
  const notices = noticesOf.get(head.uid) ?? [];
  // Nothing was granted, and what it has stays.
  if (notices.some(({ blocks }) => blocks)) return { ...rest, notices };
  const ruleListeners = placeCertificates(granted, ids, refused);
  const planned = { ...rest, notices, listeners: [], ruleListeners };
  if (desired === undefined) return planned;
  const { source } = desired;
  const { passToTarget, deletionProtection, securityGroups, allowAddressChange = false } = settings;
  return {
    ...planned,
    desired: {
      ...{ source, listenerName, listeners: [], ruleListeners },
      ...(passToTarget === undefined ? {} : { passesToTarget: passToTarget }),
      ...(deletionProtection === undefined ? {} : { isDeleteProtected: deletionProtection }),
      ...(securityGroups === undefined ? {} : { securityGroupIds: securityGroups }),
      ...bandwidthOf(source, plan.bandwidthMbps ?? settings.bandwidthMbps),
      ...(maxRules === undefined ? {} : { maxRules }),
      allowsAddressChange: allowAddressChange,
    },
  };
}

function bandwidthOf(source: BalancerSource, bandwidthMbps: number | undefined): Partial<DesiredLoadBalancer> {
  return source.kind === 'own' && source.spec.type === 'OPEN' && bandwidthMbps !== undefined ? { bandwidthMbps } : {};
}

/** Plans where clients reach an Ingress. Empty: the load balancer has no address yet. */
export function planAddresses({ vips, domain }: Pick<LoadBalancer, 'vips' | 'domain'>): readonly StatusAddress[] {
  if (vips.length > 0) return vips.map((ip) => ({ ip }));
  return domain === '' ? [] : [{ hostname: domain }];
}
