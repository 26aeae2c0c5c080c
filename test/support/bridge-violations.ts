import type { JournalFacts, LeaseFacts } from './journal-facts.ts';
import type { KernelFacts } from './kernel-facts.ts';

/** What the GlobalRoute part of a node is judged by. */
type BridgeScope = {
  readonly podCidrs?: readonly string[];
  readonly grWiring?: 'bridge' | 'routed';
};

/**
 * Judges what GlobalRoute Pods have in common: the bridge with the first address of each block that Pods on it live in,
 * or none where nobody needs it, and no port without a lease.
 */
export function findBridgeViolations(
  scope: BridgeScope,
  journal: JournalFacts,
  kernel: KernelFacts,
): readonly string[] {
  const bridge = kernel.links.find(({ kind, ifname }) => kind === 'bridge' && ifname === 'cbr0');
  const blocks = bridgedBlocks(scope, journal);
  if (bridge === undefined) return blocks.length === 0 ? [] : [`kernel: no bridge cbr0 for ${blocks}`];
  const wanted = blocks.map((cidr) => `cbr0 ${gatewayPrefix(cidr)}`);
  const has = kernel.addresses.filter((line) => line.startsWith('cbr0 ') && !line.includes(':'));
  const aliases = journal.leases.filter(isOnBridge).map((lease) => `tke-eni/${lease.containerId}/${lease.ifName}`);
  return [
    ...wanted.filter((line) => !has.includes(line)).map((line) => `kernel: address missing: ${line}`),
    ...has.filter((line) => !wanted.includes(line)).map((line) => `kernel: address nobody wants: ${line}`),
    ...(bridge.isUp ? [] : ['kernel: cbr0 is down']),
    ...(bridge.isPromiscuous ? ['kernel: cbr0 is promiscuous'] : []),
    ...(bridge.master === '' ? [] : [`kernel: cbr0 is in ${bridge.master}`]),
    ...kernel.links
      .filter(({ master, alias }) => master === 'cbr0' && !aliases.includes(alias))
      .map(({ ifname, alias }) => `kernel: port ${ifname} (alias '${alias}') of cbr0 has no lease`),
  ];
}

/** Routes that lead a block to the bridge, and refuse what no Pod has. */
export function expectedBlockRoutes(scope: BridgeScope, journal: JournalFacts): readonly string[] {
  if (scope.grWiring === undefined) return [];
  const former = journal.leases.flatMap(({ block }) => (block === undefined ? [] : [block.cidr]));
  const blocks = [...new Set([...(scope.podCidrs ?? []), ...former])];
  return [
    ...blocks.map((cidr) => `254 ${cidr} unreachable`),
    ...bridgedBlocks(scope, journal).map((cidr) => `254 ${cidr} dev cbr0`),
  ];
}

/** True for a lease whose link is a port of the bridge. */
export function isOnBridge({ block }: LeaseFacts): boolean {
  return block?.wiring === 'bridge';
}

function bridgedBlocks(scope: BridgeScope, journal: JournalFacts): readonly string[] {
  const ofNew = scope.grWiring === 'bridge' ? (scope.podCidrs ?? []) : [];
  const ofPods = journal.leases.filter(isOnBridge).map(({ block }) => block?.cidr ?? '');
  return [...new Set([...ofNew, ...ofPods])];
}

/** `172.20.0.0/26` -> `172.20.0.1/26`; blocks of tests begin at a number below 255. */
export function gatewayPrefix(cidr: string): string {
  return cidr.replace(/\.(\d+)\/(\d+)$/, (_, last: string, length: string) => `.${Number(last) + 1}/${length}`);
}
