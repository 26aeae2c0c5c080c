import type { NodeSettings } from './node-eni-config-annotations.ts';
import type { NodeEniConfigSpec } from './node-eni-config-fields.ts';

/** Limits of what a node may have; an absent one is not known yet. */
type NodeLimits = {
  /** Shared ENIs. */
  readonly routeEnis?: number;
  /** Pod addresses on one shared ENI. */
  readonly ipsPerEni?: number;
  /** Exclusive ENIs, static ones included; 0 when the node serves none. */
  readonly exclusiveEnis: number;
};

/**
 * Returns the limits of a node: of spec and annotation the lower one applies, because ipamd bounds the spec by what the
 * instance may have. An annotation alone makes no node serve exclusive ENIs.
 * @param settings The accepted settings of its annotations.
 */
export function nodeLimitsOf(spec: NodeEniConfigSpec | undefined, settings: NodeSettings): NodeLimits {
  return {
    ...named('routeEnis', lowest(spec?.maxRouteENI, settings.routeMaxAttach)),
    ...named('ipsPerEni', lowest(spec?.maxIPPerENI, settings.maxIpPerEni)),
    exclusiveEnis: lowest(spec?.maxDirectENI ?? 0, settings.directMaxAttach) ?? 0,
  };
}

function lowest(first: number | undefined, second: number | undefined): number | undefined {
  return first === undefined || second === undefined ? (first ?? second) : Math.min(first, second);
}

function named<K extends string, T>(key: K, value: T | undefined): { readonly [P in K]?: T } {
  // The object has no key, or exactly the one key.
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: T };
}
