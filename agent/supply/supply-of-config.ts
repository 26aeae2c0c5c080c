import type { NodeSettings } from '../../crd/node-eni-config-annotations.ts';
import {
  type NodeEniConfigFields,
  type NodeEniInfo,
  WARM_TARGET_ANNOTATION,
} from '../../crd/node-eni-config-fields.ts';
import { nodeLimitsOf } from '../../crd/node-limits.ts';
import { exclusiveSupplyOf } from '../exclusive/exclusive-supply.ts';
import { familyOf } from '../journal/lease.ts';
import type { EniPrimaryAddress, Supply, SupplyAddress, SupplyEni, WarmTargets } from '../journal/supply.ts';

/** The product's default of warm addresses. */
const DEFAULT_WARM_TARGET = 5;

/**
 * Converts a NodeENIConfig into what the pool and the data plane use. Without status there is no ENI yet. Whole ENIs
 * are listed apart.
 * @param settings The accepted settings of its annotations; they take precedence over the spec.
 */
export function supplyOfConfig(config: NodeEniConfigFields, settings: NodeSettings = {}): Supply {
  const allocatable = config.status?.allocatableRouteENIIPs;
  const maxEips = config.status?.maxEIPs;
  const direct = exclusiveSupplyOf(config, settings);
  const registeredIps = config.loadBalancers?.registeredIPs;
  return {
    nodeName: config.metadata.name,
    epoch: config.status?.supplyEpoch ?? 0,
    enis: (config.status?.eniInfos ?? []).filter(({ mode }) => mode !== 'direct-eni').map(eniOf),
    warm: warmTargetsOf(config, settings),
    ...(direct === undefined ? {} : { direct }),
    ...(allocatable === undefined ? {} : { allocatable }),
    ...(maxEips === undefined ? {} : { maxEips }),
    ...(config.spec?.enableStaticIP === true ? { isStaticIpEnabled: true } : {}),
    ...(registeredIps === undefined ? {} : { registeredIps }),
  };
}

/**
 * Annotations take precedence over the spec. If only one target is given, the other follows so that minimum <= maximum.
 */
function warmTargetsOf({ metadata, spec, status }: NodeEniConfigFields, settings: NodeSettings): WarmTargets {
  const targets = settings.routeWarm ?? {
    min: metadata.annotations?.[WARM_TARGET_ANNOTATION.min] ?? spec?.routeENIIPMinWarmTarget,
    max: metadata.annotations?.[WARM_TARGET_ANNOTATION.max] ?? spec?.routeENIIPMaxWarmTarget,
  };
  const min = targets.min ?? Math.min(DEFAULT_WARM_TARGET, targets.max ?? DEFAULT_WARM_TARGET);
  const max = Math.max(min, targets.max ?? DEFAULT_WARM_TARGET);
  const { routeEnis, ipsPerEni } = nodeLimitsOf(spec, settings);
  return {
    ...{ min, max },
    ...(routeEnis === undefined || ipsPerEni === undefined ? {} : { limit: routeEnis * ipsPerEni }),
    ...(spec?.enableQuickRelease === true ? { isQuickRelease: true } : {}),
    ...(spec?.desiredRouteENIPodNum === undefined ? {} : { floor: spec.desiredRouteENIPodNum }),
    ...(status?.staticRouteENIIPs === undefined ? {} : { keptPlaces: status.staticRouteENIIPs }),
  };
}

function eniOf(eni: NodeEniInfo): SupplyEni {
  const addresses = eni.addresses ?? [];
  // A pair may be written at either address; it holds for both.
  const partners = new Map(
    addresses.flatMap(({ ip, pairedIP }) =>
      pairedIP === undefined
        ? []
        : [
            [ip, pairedIP],
            [pairedIP, ip],
          ],
    ) as [string, string][],
  );
  return {
    eniId: eni.eniID,
    mac: eni.mac,
    primary: [
      ...primaryOf(eni.primaryIP, eni.gateway, eni.subnetCIDR),
      ...primaryOf(eni.primaryIPv6, eni.gatewayIPv6, eni.subnetIPv6CIDR),
    ],
    ...(eni.deviceIndex === undefined ? {} : { deviceIndex: eni.deviceIndex }),
    attached: eni.state === 'Attached',
    draining: eni.draining ?? false,
    addresses: addresses.map(({ ip, assignmentID, state, claim }): SupplyAddress => {
      const pairedIp = partners.get(ip);
      return {
        ip,
        family: familyOf(ip),
        assignmentId: assignmentID,
        state: state === 'Assigned' ? 'assigned' : 'releasing',
        ...(pairedIp === undefined ? {} : { pairedIp }),
        ...(claim === undefined ? {} : { claim }),
      };
    }),
  };
}

function primaryOf(
  ip: string | undefined,
  gateway: string | undefined,
  subnetCidr: string | undefined,
): readonly EniPrimaryAddress[] {
  if (ip === undefined || gateway === undefined || subnetCidr === undefined) return [];
  return [{ ip, family: familyOf(ip), gateway, subnetCidr }];
}
