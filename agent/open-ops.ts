import { summarizeOperation } from '../dataplane/operation.ts';
import { CNI_CODE } from './api/cni-code.ts';
import { CniFailureError } from './api/cni-failure.ts';
import type { RepairReplyInit } from './api/ops-messages.ts';
import { failureOf } from './attachment/failure-of.ts';
import type { ClusterConnection } from './cluster.ts';
import type { AgentComponents } from './components.ts';
import type { AgentConfig } from './config/options.ts';
import { listRuntimeHandlers } from './cri/runtime-handlers.ts';
import type { HostPorts } from './host-ports.ts';
import { isQuickRelease, type WarmTargets } from './journal/supply.ts';
import type { OpsUseCases } from './ops/ops-service.ts';
import { poolReply } from './ops/pool-reply.ts';
import { notReadyReason, type Readiness } from './ops/readiness.ts';
import { recorderReply } from './ops/recorder-reply.ts';
import { migrationReply, repairReply } from './ops/repair-reply.ts';
import { summaryReply } from './ops/summary-reply.ts';
import { microseconds } from './recorder/event-message.ts';
import { type PreviewDeps, previewMigration, previewRepair } from './repair/preview.ts';
import type { RepairLoop } from './repair/repair-loop.ts';
import { statusOf } from './state/status.ts';

/** Dependencies of the ops service. */
export type OpsDeps = {
  readonly components: OpsParts;
  readonly readiness: Readiness;
  readonly loop: Pick<RepairLoop, 'pass' | 'runExclusive' | 'kick'>;
  /** Undefined without a cluster. */
  readonly cluster: Pick<ClusterConnection, 'warm' | 'outside' | 'silenceMs' | 'apiFailures' | 'asked'> | undefined;
  /** When the agent started, monotonic milliseconds. */
  readonly startedMs: number;
};

/** Those of the agent's components that the ops service uses. */
type OpsParts = Pick<
  AgentComponents,
  'clock' | 'log' | 'journal' | 'state' | 'recorder' | 'hub' | 'metrics' | 'programs' | 'view' | 'kubeUse'
> & {
  readonly config: Pick<
    AgentConfig,
    'ipCooldownMs' | 'nodeName' | 'supplySource' | 'grWiring' | 'enableQuickRelease' | 'releaseIntervalMs'
  >;
  readonly host: Pick<HostPorts, 'openExplainer'>;
  readonly finder: Pick<AgentComponents['finder'], 'primary'>;
  readonly reconcile: PreviewDeps;
};

/** The cause of such a pass, in logs and metrics. */
const CAUSE = 'ops';
const RULE_MODES = ['compact', 'per-pod'] as const;
const NO_WARM: WarmTargets = { min: 0, max: 0 };

/** Implements the calls of the ops CLI with the agent's components. */
export function openOps(deps: OpsDeps): OpsUseCases {
  const { components, cluster } = deps;
  const { config, clock, state, recorder, hub } = components;
  const explainer = components.host.openExplainer(() => listRuntimeHandlers(components.view, clock));
  return {
    pool: async ({ runtimeHandlers }) => {
      const warm = cluster?.warm() ?? state.supply?.warm ?? NO_WARM;
      const isQuick = isQuickRelease(config.enableQuickRelease, warm);
      return poolReply(state, {
        ...(runtimeHandlers ? { handlers: await listRuntimeHandlers(components.view, clock) } : {}),
        bootMs: clock.bootMs(),
        cooldownMs: config.ipCooldownMs,
        ...(cluster?.asked === undefined ? {} : { asked: cluster.asked }),
        warm,
        outside: cluster?.outside() ?? { waiting: state.addsWaiting.size, floor: 0 },
        release: config.supplySource === 'file' ? undefined : { isQuick, everyMs: config.releaseIntervalMs },
      });
    },
    summary: () => summary(deps),
    repair: (request) => repair(deps, request),
    recorder: (pod) => recorderReply(recorder, pod),
    explain: (request) => explainer.explain(request),
    watch: (watcher) => hub.watch(watcher),
    watchers: () => hub.watchers,
    close: () => hub.close(),
  };
}

async function summary({ components, readiness, cluster, startedMs }: OpsDeps) {
  const { config, clock, journal, state, metrics, hub } = components;
  const kube = components.kubeUse?.();
  const monotonicMs = clock.monotonicMs();
  return summaryReply(state, {
    ...{ monotonicMs, startedMs },
    nodeName: config.nodeName === '' ? (state.supply?.nodeName ?? '') : config.nodeName,
    supplySource: config.supplySource,
    grWiring: config.grWiring,
    journalOrigin: journal.origin,
    status: statusOf(state, notReadyReason(readiness)),
    metrics: await metrics.registry.getMetricsAsJSON(),
    paused: [
      ...components.reconcile.fights.contested(monotonicMs).map(summarizeOperation),
      ...(readiness.contestedFiles ?? []),
    ],
    lastPass: readiness.lastPass,
    kube: kube === undefined || cluster === undefined ? undefined : { ...kube, silenceMs: cluster.silenceMs() },
    apiFailures: cluster?.apiFailures() ?? [],
    watchers: hub.watchers,
    programs: components.programs,
  });
}

/** Runs a repair pass or a preview. It waits for its place between the agent's own passes: there is one writer. */
async function repair(
  deps: OpsDeps,
  { dryRun, ruleMode }: Parameters<OpsUseCases['repair']>[0],
): Promise<RepairReplyInit> {
  const { components } = deps;
  const { clock, log } = components;
  const startedMs = clock.monotonicMs();
  const answer = (reply: RepairReplyInit): RepairReplyInit => ({
    ...{ ...reply, dryRun },
    durationUs: microseconds(clock.monotonicMs() - startedMs),
  });
  try {
    // The caller expects everything to be read again, as by the timer.
    components.reconcile.kernel.invalidateNft();
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
  const found = await deps.loop.runExclusive(() => previewRepair(deps.components.reconcile));
  return found === undefined ? undefined : repairReply({ ...found, failed: [] });
}

/** @throws CniFailureError when the request cannot be answered. */
async function migration(
  { components, loop }: OpsDeps,
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
  const steps = await loop.runExclusive(() => previewMigration(components.reconcile, mode));
  return steps === undefined ? undefined : migrationReply(steps);
}

async function pass({ components, loop }: OpsDeps): Promise<RepairReplyInit | undefined> {
  const { done, failed, paused, conflicts, isStale } = await loop.pass(CAUSE);
  if (isStale) loop.kick(CAUSE);
  if (components.finder.primary() === undefined) return undefined;
  return repairReply({ operations: done, failed, paused, conflicts });
}
