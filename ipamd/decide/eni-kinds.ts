import { MODE_TAG } from '../../crd/cloud-tags.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from './decision.ts';
import { EXTENSION_ENIS, type NodeView } from './node-view.ts';
import { isShared } from './with-enis.ts';

/**
 * What tells one kind of ENI from another. A further kind of ENI that one Pod uses alone is a further row of {@link KINDS}: what
 * counts, requests and gives back ENIs reads the rows.
 */
export type EniKind = {
  /** Mode of its ENIs, and the value of their tag in the cloud; undefined: they have neither. */
  readonly mode: string | undefined;
  /**
   * Pods share an ENI: a slot of the kind is one of its secondary addresses. Else one Pod uses the whole ENI, and the
   * ENI is the slot.
   */
  readonly isShared: boolean;
  /** Fewest free addresses of a subnet for a new one: for the ENI itself, and for a Pod where that is another. */
  readonly minFreeIps: number;
  /** It uses the places of the extension type where the instance has such. */
  readonly usesExtension: boolean;
  /** Type of the node's condition about the kind, and what the condition calls the slots. */
  readonly condition: string;
  readonly noun: string;
  /** Slots that the agent requests for its pool. */
  readonly demandOf: (view: NodeView) => number;
  /** How many of them are spare: with fewer than the rest, Pods wait. */
  readonly warmTargetOf: (view: NodeView) => number;
  /** Limit of ENIs by policy and annotations; undefined: none but that of the instance. */
  readonly maxEnisOf: (view: NodeView) => number | undefined;
};

const SHARED: EniKind = {
  mode: undefined,
  isShared: true,
  minFreeIps: 2,
  usesExtension: false,
  condition: 'Ready',
  noun: 'addresses',
  demandOf: ({ spec, initialDemand, floor }) => Math.max(spec.desiredRouteENIIP ?? initialDemand, floor),
  warmTargetOf: ({ spec, warmTarget }) => warmTarget ?? spec.routeENIIPMinWarmTarget ?? 5,
  maxEnisOf: ({ maxRouteENI }) => maxRouteENI,
};

const EXCLUSIVE: EniKind = {
  mode: MODE_TAG.direct,
  isShared: false,
  minFreeIps: 1,
  usesExtension: true,
  condition: 'DirectENIReady',
  noun: 'exclusive ENIs',
  demandOf: ({ spec, initialExclusiveDemand }) => spec.desiredDirectENI ?? initialExclusiveDemand ?? 0,
  warmTargetOf: ({ spec }) => spec.directENIMinWarmTarget ?? 1,
  maxEnisOf: ({ maxDirectENI }) => maxDirectENI ?? 0,
};

/** The kinds of ENIs, in the order in which their wants are met. */
export const KINDS = { shared: SHARED, exclusive: EXCLUSIVE } as const satisfies Readonly<Record<string, EniKind>>;

/** Reports whether an ENI is of a kind. */
export function isOfKind({ mode, isShared: isForMany }: EniKind, eni: NodeEniInfo): boolean {
  return isForMany ? isShared(eni) : eni.mode === mode;
}

/** Reports whether an intent creates an ENI of a kind. */
export function isCreationOf({ mode }: EniKind, { action, tags }: Pick<Intent, 'action' | 'tags'>): boolean {
  return action === 'CreateNetworkInterface' && tags?.[MODE_TAG.name] === mode;
}

/** Reports whether new ENIs of a kind come to places of the extension type. */
export function isOnExtension({ usesExtension }: EniKind, { instance }: Pick<NodeView, 'instance'>): boolean {
  return usesExtension && (instance?.extensionEnis ?? 0) > 0;
}

/** Returns the key of the breaker of the places that new ENIs of a kind come to. */
export function placesKeyOf(kind: EniKind, view: Pick<NodeView, 'instance'>): string {
  return isOnExtension(kind, view) ? EXTENSION_ENIS : 'instance-enis';
}
