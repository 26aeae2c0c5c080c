import type { NodeSettings } from '../../crd/node-eni-config-annotations.ts';
import {
  type NodeEniConfigFields,
  type NodeEniInfo,
  WARM_TARGET_ANNOTATION,
} from '../../crd/node-eni-config-fields.ts';
import { nodeLimitsOf } from '../../crd/node-limits.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import type {
  EniPrimaryAddress,
  ExclusiveSupply,
  ExclusiveSupplyEni,
  Supply,
  SupplyAddress,
  SupplyEni,
  WarmTargets,
} from '../journal/supply.ts';

/** The product's defaults: warm addresses, and warm whole ENIs. */
export const DEFAULT_WARM = { addresses: 5, enis: 1 } as const;

/**
 * Converts a NodeENIConfig into what the pool and the data plane use. Without status there is no ENI yet. Whole ENIs
 * are listed apart.
 * @param settings The accepted settings of its annotations; they take precedence over the spec.
 */
export function supplyOfConfig(config: NodeEniConfigFields, settings: NodeSettings = {}): Supply {
  const allocatable = config.status?.allocatableRouteENIIPs;
  const maxEips = config.status?.maxEIPs;
  const exclusive = exclusiveSupplyOf(config, settings);
  const registeredIps = config.loadBalancers?.registeredIPs;
  return {
    nodeName: config.metadata.name,
    epoch: config.status?.supplyEpoch ?? 0,
    enis: (config.status?.eniInfos ?? []).filter(({ mode }) => mode !== 'direct-eni').map(eniOf),
    warm: warmTargetsOf(config, settings),
    ...(exclusive === undefined ? {} : { direct: exclusive }),
    ...(allocatable === undefined ? {} : { allocatable }),
    ...(maxEips === undefined ? {} : { maxEips }),
    ...(config.spec?.enableStaticIP === true ? { isStaticIpEnabled: true } : {}),
    ...(registeredIps === undefined ? {} : { registeredIps }),
  };
}

/** Annotations take precedence over the spec. */
function warmTargetsOf({ metadata, spec, status }: NodeEniConfigFields, settings: NodeSettings): WarmTargets {
  const targets = settings.routeWarm ?? {
    min: metadata.annotations?.[WARM_TARGET_ANNOTATION.min] ?? spec?.routeENIIPMinWarmTarget,
    max: metadata.annotations?.[WARM_TARGET_ANNOTATION.max] ?? spec?.routeENIIPMaxWarmTarget,
  };
  const { routeEnis, ipsPerEni } = nodeLimitsOf(spec, settings);
  return {
    ...rangeOf(targets, DEFAULT_WARM.addresses),
    ...(routeEnis === undefined || ipsPerEni === undefined ? {} : { limit: routeEnis * ipsPerEni }),
    ...(spec?.enableQuickRelease === true ? { isQuickRelease: true } : {}),
    ...(spec?.desiredRouteENIPodNum === undefined ? {} : { floor: spec.desiredRouteENIPodNum }),
    ...(status?.staticRouteENIIPs === undefined ? {} : { keptPlaces: status.staticRouteENIIPs }),
  };
}

/** If only one target is given, the other follows so that minimum <= maximum. */
function rangeOf(
  targets: { readonly min?: number | undefined; readonly max?: number | undefined },
  byDefault: number,
): { readonly min: number; readonly max: number } {
  const min = targets.min ?? Math.min(byDefault, targets.max ?? byDefault);
  return { min, max: Math.max(min, targets.max ?? byDefault) };
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
    primary: primaryOf(eni),
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

/**
 * Reads the whole ENIs of a NodeENIConfig; undefined for a node that has none and may have none.
 * @param settings The accepted settings of its annotations. Its warm targets take precedence over the spec.
 */
export function exclusiveSupplyOf(
  { spec, status }: NodeEniConfigFields,
  settings: NodeSettings,
): ExclusiveSupply | undefined {
  const enis = (status?.eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni').map(wholeEniOf);
  const maxEnis = nodeLimitsOf(spec, settings).exclusiveEnis;
  const limit = Math.min(maxEnis, status?.allocatableDirectENIs ?? maxEnis);
  const marked = enis.filter(({ claim, state }) => claim !== undefined && state !== 'detaching').length;
  // Capacity for Pods that wait for an ENI with a claim does not belong to the pool, although those ENIs are not here
  // yet.
  const awaited = Math.max(0, (status?.staticDirectENIs ?? 0) - marked);
  if (enis.length === 0 && maxEnis === 0) return undefined;
  const targets = settings.directWarm ?? { min: spec?.directENIMinWarmTarget, max: spec?.directENIMaxWarmTarget };
  return { enis, warm: { ...rangeOf(targets, DEFAULT_WARM.enis), limit, ...(awaited === 0 ? {} : { awaited }) } };
}

const STATES = { Attaching: 'attaching', Attached: 'attached', Detaching: 'detaching' } as const;

function wholeEniOf(eni: NodeEniInfo): ExclusiveSupplyEni {
  const { eniID, mac, assignmentID = '', state, draining = false, claim } = eni;
  return {
    ...{ eniId: eniID, mac, assignmentId: assignmentID, draining, primary: primaryOf(eni), state: STATES[state] },
    ...(claim === undefined ? {} : { claim }),
  };
}

function primaryOf(eni: NodeEniInfo): readonly EniPrimaryAddress[] {
  const families = [
    [eni.primaryIP, eni.gateway, eni.subnetCIDR],
    [eni.primaryIPv6, eni.gatewayIPv6, eni.subnetIPv6CIDR],
  ] as const;
  return families.flatMap(([ip, gateway, subnetCidr]) =>
    ip === undefined || gateway === undefined || subnetCidr === undefined
      ? []
      : [{ ip, family: familyOf(ip), gateway, subnetCidr }],
  );
}
