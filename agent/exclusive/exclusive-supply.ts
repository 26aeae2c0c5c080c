import type { NodeSettings } from '../../crd/node-eni-config-annotations.ts';
import type { NodeEniConfigFields, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { nodeLimitsOf } from '../../crd/node-limits.ts';
import { familyOf } from '../journal/lease.ts';
import type { EniPrimaryAddress, ExclusiveSupply, ExclusiveSupplyEni } from '../journal/supply.ts';

/** The product's default: one warm ENI. */
const DEFAULT_WARM = 1;

/**
 * Reads the whole ENIs of a NodeENIConfig; undefined for a node that has none and may have none.
 * @param settings The accepted settings of its annotations. Its warm targets take precedence over the spec.
 */
export function exclusiveSupplyOf(
  { spec, status }: NodeEniConfigFields,
  settings: NodeSettings,
): ExclusiveSupply | undefined {
  const enis = (status?.eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni').map(eniOf);
  const maxEnis = nodeLimitsOf(spec, settings).directEnis;
  const limit = Math.min(maxEnis, status?.allocatableDirectENIs ?? maxEnis);
  const marked = enis.filter(({ claim, state }) => claim !== undefined && state !== 'detaching').length;
  // Capacity for Pods that wait for an ENI with a claim does not belong to the pool, although those ENIs are not here
  // yet.
  const awaited = Math.max(0, (status?.staticDirectENIs ?? 0) - marked);
  if (enis.length === 0 && maxEnis === 0) return undefined;
  const targets = settings.directWarm ?? { min: spec?.directENIMinWarmTarget, max: spec?.directENIMaxWarmTarget };
  const min = targets.min ?? Math.min(DEFAULT_WARM, targets.max ?? DEFAULT_WARM);
  const max = Math.max(min, targets.max ?? DEFAULT_WARM);
  return { enis, warm: { min, max, limit, ...(awaited === 0 ? {} : { awaited }) } };
}

const STATES = { Attaching: 'attaching', Attached: 'attached', Detaching: 'detaching' } as const;

function eniOf(eni: NodeEniInfo): ExclusiveSupplyEni {
  const { eniID, mac, assignmentID = '', state, draining = false, claim } = eni;
  return {
    ...{ eniId: eniID, mac, assignmentId: assignmentID, draining },
    primary: [
      ...primaryOf(eni.primaryIP, eni.gateway, eni.subnetCIDR),
      ...primaryOf(eni.primaryIPv6, eni.gatewayIPv6, eni.subnetIPv6CIDR),
    ],
    state: STATES[state],
    ...(claim === undefined ? {} : { claim }),
  };
}

function primaryOf(ip?: string, gateway?: string, subnetCidr?: string): readonly EniPrimaryAddress[] {
  if (ip === undefined || gateway === undefined || subnetCidr === undefined) return [];
  return [{ ip, family: familyOf(ip), gateway, subnetCidr }];
}
