import { CNI_CODE } from '../api/cni-code.ts';
import type { RepairReplyInit } from '../api/ops-messages.ts';
import type { ClusterSide } from '../cluster/cluster.ts';
import { CniFailureError } from '../cni-failure.ts';
import type { AgentConfig } from '../config/options.ts';
import { failureOf } from '../failure-of.ts';
import { type Gate, holdOf } from '../gate.ts';
import type { WarmTargets } from '../journal/supply.ts';
import type { AgentParts, AgentRuntime } from '../parts.ts';
import { type PreviewDeps, previewMigration, previewRepair } from '../repair/preview.ts';
import type { RepairLoop } from '../repair/repair-loop.ts';
import type { OpsUseCases } from '../server/ops-service.ts';
import { statusOf } from '../status.ts';
import { microseconds } from './event-message.ts';
import { poolReply } from './pool-reply.ts';
import { recorderReply } from './recorder-reply.ts';
import { migrationReply, repairReply } from './repair-reply.ts';
import { summaryReply } from './summary-reply.ts';

/** Dependencies of the ops service. */
export type OpsDeps = {
  readonly config: Pick<AgentConfig, 'ipCooldownMs' | 'nodeName' | 'supplySource'>;
  readonly runtime: Pick<AgentRuntime, 'kubeUse'>;
  readonly parts: OpsParts;
  readonly gate: Gate;
  readonly loop: Pick<RepairLoop, 'pass' | 'alone' | 'kick'>;
  /** Undefined without a cluster. */
  readonly cluster: Pick<ClusterSide, 'warm' | 'outside' | 'silenceMs'> | undefined;
  /** When the agent started, monotonic milliseconds. */
  readonly startedMs: number;
};

/** Those of the agent's components that the ops service uses. */
type OpsParts = Pick<AgentParts, 'state' | 'recorder' | 'hub' | 'metrics'> & {
  readonly useCases: Pick<AgentParts['useCases'], 'clock' | 'log' | 'journal'>;
  readonly finder: Pick<AgentParts['finder'], 'primary'>;
  readonly reconcile: PreviewDeps;
};

/** The cause of such a pass, in logs and metrics. */
const CAUSE = 'ops';
const RULE_MODES = ['compact', 'per-pod'] as const;
const NO_WARM: WarmTargets = { min: 0, max: 0 };

/** Implements the calls of the ops CLI with the agent's components. */
export function openOps(deps: OpsDeps): OpsUseCases {
  const { config, parts, cluster } = deps;
  const { state, useCases, recorder, hub } = parts;
  return {
    pool: () =>
      poolReply(state, {
        bootMs: useCases.clock.bootMs(),
        cooldownMs: config.ipCooldownMs,
        warm: cluster?.warm() ?? state.supply?.warm ?? NO_WARM,
        outside: cluster?.outside() ?? { waiting: state.addsWaiting.size, floor: 0 },
      }),
    summary: () => summary(deps),
    repair: (request) => repair(deps, request),
    recorder: (pod) => recorderReply(recorder, pod),
    watch: (watcher) => hub.watch(watcher),
    watchers: () => hub.watchers,
    close: () => hub.close(),
  };
}

async function summary({ config, runtime, parts, gate, cluster, startedMs }: OpsDeps) {
  const { state, useCases, metrics, hub } = parts;
  const kube = runtime.kubeUse?.();
  const monotonicMs = useCases.clock.monotonicMs();
  return summaryReply(state, {
    ...{ monotonicMs, startedMs },
    nodeName: config.nodeName === '' ? (state.supply?.nodeName ?? '') : config.nodeName,
    supplySource: config.supplySource,
    journalOrigin: useCases.journal.origin,
    status: statusOf(state, holdOf(gate)),
    counted: await metrics.registry.getMetricsAsJSON(),
    held: parts.reconcile.fights.held(monotonicMs),
    lastPass: gate.lastPass,
    kube: kube === undefined || cluster === undefined ? undefined : { ...kube, silenceMs: cluster.silenceMs() },
    watchers: hub.watchers,
  });
}

/** Runs a repair pass or a preview. It waits for its place between the agent's own passes: there is one writer. */
async function repair(
  deps: OpsDeps,
  { dryRun, ruleMode }: Parameters<OpsUseCases['repair']>[0],
): Promise<RepairReplyInit> {
  const { parts } = deps;
  const { clock, log } = parts.useCases;
  const startedMs = clock.monotonicMs();
  const answer = (reply: RepairReplyInit): RepairReplyInit => ({
    ...{ ...reply, dryRun },
    durationUs: microseconds(clock.monotonicMs() - startedMs),
  });
  try {
    // The caller expects everything to be read anew, as by the timer.
    parts.reconcile.kernel.forgetNft();
    const found = ruleMode === '' ? await findingsOf(deps, dryRun) : await migration(deps, ruleMode, dryRun);
    if (found !== undefined) return answer(found);
    return answer({
      error: {
        code: CNI_CODE.notAvailable,
        msg: 'the node has no primary interface yet, so that nothing can be planned',
        details: 'set --primary-interface of tke-eni-agent when it has no default route',
      },
    });
  } catch (error) {
    log.error('a repair that was asked for failed', { dryRun, error });
    return answer({ error: failureOf(error) });
  }
}

async function findingsOf(deps: OpsDeps, dryRun: boolean): Promise<RepairReplyInit | undefined> {
  if (!dryRun) return await pass(deps);
  const found = await deps.loop.alone(() => previewRepair(deps.parts.reconcile));
  return found === undefined ? undefined : repairReply({ ...found, failed: [] });
}

/** @throws CniFailureError when the request cannot be answered. */
async function migration(
  { parts, loop }: OpsDeps,
  ruleMode: string,
  dryRun: boolean,
): Promise<RepairReplyInit | undefined> {
  const mode = RULE_MODES.find((known) => known === ruleMode);
  if (mode === undefined || !dryRun) {
    const why = mode === undefined ? `rule mode "${ruleMode}" is not known` : 'a rule mode can be asked for, not set';
    throw new CniFailureError(
      CNI_CODE.invalidEnvironment,
      why,
      `with dry_run: ${RULE_MODES.join(' or ')}; set --rule-mode`,
    );
  }
  const steps = await loop.alone(() => previewMigration(parts.reconcile, mode));
  return steps === undefined ? undefined : migrationReply(steps);
}

async function pass({ parts, loop }: OpsDeps): Promise<RepairReplyInit | undefined> {
  const { done, failed, held, conflicts, isStale } = await loop.pass(CAUSE);
  if (isStale) loop.kick(CAUSE);
  if (parts.finder.primary() === undefined) return undefined;
  return repairReply({ operations: done, failed, held, conflicts });
}
