import type { Conflict } from '../../dataplane/conflict.ts';
import type { HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { type MigrationStep, planMigration } from '../../dataplane/migration.ts';
import type { RuleMode } from '../../dataplane/network.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import type { Operation } from '../../dataplane/operation.ts';
import { desiredState } from './desired-state.ts';
import { findExclusiveNics } from './locate-exclusive-nics.ts';
import { planIdleNics } from './plan-idle-nics.ts';
import { leftOut, namerOf, type ReconcileDeps, withoutReliant } from './reconcile.ts';
import { listPlannedEnis } from './sync-enis.ts';

/** What a repair pass would do now. */
type RepairPreview = {
  readonly operations: readonly Operation[];
  /** What it would leave out: another program keeps undoing it, or it relies on what is left out. */
  readonly paused: readonly Operation[];
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
  const observation = await observe(deps, state.ruleMode);
  if (observation === undefined) return undefined;
  const { operations: differing, conflicts } = diffHost(observation.desiredHost, observation.observed);
  const links = kernel.links();
  const idle = planIdleNics(
    [...findExclusiveNics(state, links).values()].map((link) => ({
      link,
      prefixes: kernel.addressesOn(link.ifindex),
    })),
  );
  const operations = [...idle, ...differing];
  const nowMs = clock.monotonicMs();
  const nameObject = namerOf(links);
  const allowed = withoutReliant(
    operations,
    operations.filter((operation) => !fights.isHeld(nameObject(operation), nowMs)),
  );
  return { operations: allowed, paused: leftOut(operations, allowed), conflicts };
}

/**
 * Plans the way from the kernel's present state to a rule mode, in stages; changes nothing. Undefined as
 * `previewRepair`.
 */
export async function previewMigration(
  deps: PreviewDeps,
  ruleMode: RuleMode,
): Promise<readonly MigrationStep[] | undefined> {
  const observation = await observe(deps, ruleMode);
  return observation === undefined ? undefined : planMigration(observation.desiredHost, observation.observed);
}

type Observation = { readonly desiredHost: HostState; readonly observed: ObservedHost };

async function observe(
  { state, kernel, nodeNetwork }: PreviewDeps,
  ruleMode: RuleMode,
): Promise<Observation | undefined> {
  const node = nodeNetwork();
  if (node === undefined) return undefined;
  const desired = (): HostState => {
    const links = kernel.links();
    return desiredState(state, { ...node, ruleMode }, listPlannedEnis(state, links), links);
  };
  const nft = await kernel.readNft(desired());
  const desiredHost = desired();
  return { desiredHost, observed: kernel.observe(desiredHost, nft) };
}
