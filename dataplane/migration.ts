import type { HostState } from './desired.ts';
import { diffHost } from './diff.ts';
import { PRIORITY } from './numbers.ts';
import type { ObservedHost } from './observed.ts';
import type { Operation } from './operation.ts';

/** One stage of a change of rule mode. Packets flow between any two stages. */
export type MigrationStep = { readonly what: string; readonly operations: readonly Operation[] };

const LATER: ReadonlySet<Operation['kind']> = new Set([
  'add-rule',
  'load-nft',
  'delete-address',
  'delete-rule',
  'delete-route',
]);

const STAGES: readonly { readonly what: string; readonly includes: (operation: Operation) => boolean }[] = [
  { what: 'rules of the blocks of GlobalRoute Pods, before any rule of an ENI', includes: isPodCidrRule },
  {
    what: 'settings, links, addresses and the routes of the new mode; the rules still use the old ones',
    includes: (operation) =>
      !LATER.has(operation.kind) && !isGroupChange(operation) && !isHairpin(operation) && !isPromiscChange(operation),
  },
  { what: 'hairpin on every port, before the bridge leaves promiscuous mode', includes: isHairpin },
  { what: 'the bridge leaves promiscuous mode', includes: isPromiscChange },
  {
    what: 'rules of the new mode; they match nothing yet, or what the old rules match too',
    includes: (operation) => operation.kind === 'add-rule' && !isPodCidrRule(operation),
  },
  { what: 'nftables: from here on packets take the new rules', includes: ({ kind }) => kind === 'load-nft' },
  { what: 'link groups, whose map entries are loaded now', includes: isGroupChange },
  { what: 'addresses of former blocks are deleted', includes: ({ kind }) => kind === 'delete-address' },
  { what: 'rules of the old mode are deleted', includes: ({ kind }) => kind === 'delete-rule' },
  { what: 'routes of the old mode are deleted', includes: ({ kind }) => kind === 'delete-route' },
];

/**
 * Plans the way from the observed state to `desired` as named stages. It is made for a change of the rule mode, and
 * equals the diff of a repair, whose order loses no packets in either direction:
 * - per-pod to compact: routes into table 3999, rules 512 and 1536, then the table that marks, and only then the
 *   per-pod rules and main's routes are deleted. Until packets are marked, the per-pod rules apply.
 * - compact to per-pod: main's routes, per-pod rules, then the table without marks, then rules 512 and 1536 and table
 *   3999 are deleted.
 *
 * The link groups stay loaded in both modes.
 */
export function planMigration(desired: HostState, observed: ObservedHost): readonly MigrationStep[] {
  const { operations } = diffHost(desired, observed);
  return STAGES.map(({ what, includes }) => ({ what, operations: operations.filter(includes) })).filter(
    (step) => step.operations.length > 0,
  );
}

function isPodCidrRule(operation: Operation): boolean {
  return operation.kind === 'add-rule' && operation.rule.priority === PRIORITY.podCidr;
}

function isGroupChange(operation: Operation): boolean {
  return operation.kind === 'set-link' && operation.change.group !== undefined;
}

function isHairpin({ kind }: Operation): boolean {
  return kind === 'set-port';
}

function isPromiscChange(operation: Operation): boolean {
  return operation.kind === 'set-link' && operation.change.promisc !== undefined;
}
