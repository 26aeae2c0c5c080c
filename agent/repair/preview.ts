import type { Conflict } from '../../dataplane/conflict.ts';
import type { HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { type MigrationStep, planMigration } from '../../dataplane/migration.ts';
import type { RuleMode } from '../../dataplane/network.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { type Operation, renderOperation } from '../../dataplane/operation.ts';
import { findDirectNics } from '../direct/place-direct-nics.ts';
import { planIdleNics } from '../direct/plan-idle-nics.ts';
import { findPlannedEnis } from '../eni/place-enis.ts';
import { desiredState } from './desired-state.ts';
import { leftOut, type ReconcileDeps, withoutReliant } from './reconcile.ts';

/** What a repair pass would do now. */
type RepairPreview = {
  readonly operations: readonly Operation[];
  /** What it would leave out: another program keeps undoing it, or it relies on what is left out. */
  readonly held: readonly Operation[];
  readonly conflicts: readonly Conflict[];
};

/** Dependencies of a preview. */
export type PreviewDeps = Pick<ReconcileDeps, 'clock' | 'kernel' | 'fights' | 'nodeNetwork' | 'state'>;

/**
 * Plans, observes and compares as a repair pass does, and changes nothing: neither kernel nor journal, nor the agent's
 * state. Undefined while the node has no primary interface.
 */
export async function previewRepair(deps: PreviewDeps): Promise<RepairPreview | undefined> {
  const { fights, clock, state, kernel } = deps;
  const seen = await look(deps, state.ruleMode);
  if (seen === undefined) return undefined;
  const { operations: differing, conflicts } = diffHost(seen.wanted, seen.observed);
  const idle = planIdleNics(
    [...findDirectNics(state, kernel.links()).values()].map((link) => ({
      link,
      prefixes: kernel.addressesOn(link.ifindex),
    })),
  );
  const operations = [...idle, ...differing];
  const nowMs = clock.monotonicMs();
  const allowed = withoutReliant(
    operations,
    operations.filter((operation) => !fights.wouldHold(renderOperation(operation), nowMs)),
  );
  return { operations: allowed, held: leftOut(operations, allowed), conflicts };
}

/**
 * Plans the way from the kernel's present state to a rule mode, in stages; changes nothing. Undefined as
 * `previewRepair`.
 */
export async function previewMigration(
  deps: PreviewDeps,
  ruleMode: RuleMode,
): Promise<readonly MigrationStep[] | undefined> {
  const seen = await look(deps, ruleMode);
  return seen === undefined ? undefined : planMigration(seen.wanted, seen.observed);
}

type Seen = { readonly wanted: HostState; readonly observed: ObservedHost };

async function look({ state, kernel, nodeNetwork }: PreviewDeps, ruleMode: RuleMode): Promise<Seen | undefined> {
  const node = nodeNetwork();
  if (node === undefined) return undefined;
  const desired = (): HostState => {
    const links = kernel.links();
    return desiredState(state, { ...node, ruleMode }, findPlannedEnis(state, links), links);
  };
  const nft = await kernel.readNft(desired());
  const wanted = desired();
  return { wanted, observed: kernel.observe(wanted, nft) };
}
