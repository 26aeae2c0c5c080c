import type { NodeUsage } from './node-eni-config-annotations.ts';
import type { NodeEniConfigStatus } from './node-eni-config-fields.ts';

/** Counts what is in use on a node's ENIs; `isInUse` answers for one address. */
export function nodeUsageOf(status: NodeEniConfigStatus | undefined, isInUse: (ip: string) => boolean): NodeUsage {
  const enis = status?.eniInfos ?? [];
  const shared = enis.filter((eni) => eni.mode !== 'direct-eni');
  const used = shared.map((eni) => (eni.addresses ?? []).filter(({ ip }) => isInUse(ip)).length);
  const exclusive = enis.filter((eni) => eni.mode === 'direct-eni' && eni.primaryIP !== undefined);
  return {
    routeEnis: used.filter((count) => count > 0).length,
    ipsOnFullestEni: Math.max(0, ...used),
    exclusiveEnis: exclusive.filter(({ primaryIP }) => primaryIP !== undefined && isInUse(primaryIP)).length,
  };
}
