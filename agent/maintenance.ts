import { type ClockTimer, intervalOn } from '../runtime/clock-timers.ts';
import { countsOf, MS_PER_S } from '../runtime/metrics/metric-table.ts';
import { collectOrphans } from './attachment/collect.ts';
import { finishReleasing } from './attachment/detach.ts';
import { endCooldowns } from './attachment/end-cooldowns.ts';
import { holdStrangers } from './attachment/hold-strangers.ts';
import type { ClusterConnection } from './cluster.ts';
import type { AgentComponents } from './components.ts';
import type { Installation } from './install/installation.ts';

/** Dependencies of the timers. */
type MaintenanceDeps = {
  readonly components: AgentComponents;
  readonly installation: Installation;
  /** Undefined without a cluster. */
  readonly cluster: ClusterConnection | undefined;
  readonly ensureSocket: () => Promise<boolean>;
  readonly drainSpool: () => Promise<unknown>;
  readonly noticeCilium: () => void;
  readonly signal: AbortSignal;
};

/** Interval of ending cooldowns and of setting gauges. */
const TICK_MS = 1_000;
/** Interval of looking, between writes, for a journal that was deleted or truncated. */
const VERIFY_MS = 5_000;
const RETRY_MS = 5_000;
/** Interval of looking for a configuration that chains cilium-cni. */
const CILIUM_MS = 5_000;
/** Interval of looking for addresses that other programs have; an ADD looks at its own. */
const STRANGERS_MS = 2_000;
/** Interval of looking for Pods that another program put on the bridge. */
const TAKE_OVER_MS = 10_000;
/** Interval of reading the executable: a page cache under pressure drops it within minutes. */
const WARM_MS = 300_000;
/**
 * Interval of releasing memory: what V8 took to compile, and code that ran once (an installation, a scrape, an error
 * path), adds up.
 */
const RELEASE_MEMORY_MS = 30_000;

/** Starts the periodic tasks. Each runs one at a time; a failure is logged and the next run tries again. */
export function startMaintenance(deps: MaintenanceDeps): { close(): void } {
  const { components, installation, cluster, signal } = deps;
  const { config, journal, log, view } = components;
  const timers = [
    every(deps, TICK_MS, 'sample', async () => {
      sample(components);
      if (cluster !== undefined) components.metrics.apiSilence.set(cluster.silenceMs() / MS_PER_S);
    }),
    every(deps, TICK_MS, 'end cooldowns', async () => endCooldowns(components)),
    every(deps, VERIFY_MS, 'verify journal', async () => {
      if (journal.verify() === 'rebuilt') {
        components.metrics.journalErrors.inc();
        log.error('journal was deleted or damaged while running, written again from memory');
      }
    }),
    every(deps, RETRY_MS, 'finish releasing', async () => {
      await finishReleasing(components);
      await deps.drainSpool();
    }),
    every(deps, VERIFY_MS, 'verify found settings', async () => components.found.restore()),
    every(deps, TICK_MS, 'keep the socket', async () => {
      if (await deps.ensureSocket()) log.error('the socket was removed or replaced: put back');
    }),
    every(deps, CILIUM_MS, 'look for cilium-cni', async () => deps.noticeCilium()),
    every(deps, STRANGERS_MS, 'look for strangers', async () => holdStrangers(components)),
    every(deps, TAKE_OVER_MS, 'take over', () => components.takeOver.run(signal)),
    every(deps, WARM_MS, 'warm page cache', () => installation.warmExecutable()),
    every(deps, RELEASE_MEMORY_MS, 'release memory', async () => components.host.releaseMemory()),
    ...(view === undefined
      ? []
      : [
          every(
            deps,
            config.gcIntervalMs,
            'collect',
            async () => await collectOrphans(components, view, signal, cluster?.pods),
          ),
        ]),
  ];
  return {
    close: () => {
      for (const timer of timers) timer.cancel();
    },
  };
}

function every(
  { components, signal }: MaintenanceDeps,
  intervalMs: number,
  what: string,
  run: () => Promise<unknown>,
): ClockTimer {
  let isRunning = false;
  const tick = async (): Promise<void> => {
    if (isRunning || signal.aborted) return;
    isRunning = true;
    try {
      await run();
    } catch (error) {
      components.log.error('maintenance failed, will be tried again', { what, error });
    } finally {
      isRunning = false;
    }
  };
  return intervalOn(components.clock, () => components.background(what, tick()), intervalMs);
}

function sample({ state, metrics }: AgentComponents): void {
  const addresses = [...state.pool.state.addresses.values()];
  const byEni = countsOf(addresses.map((one) => `${one.eniId} ${one.state}`));
  metrics.poolAddresses.replace(
    [...byEni].map(([key, count]) => {
      const [eni = '', its = ''] = key.split(' ');
      return [{ eni, state: its }, count];
    }),
  );
  metrics.leases.set(state.leases.size);
  const { leased: used, cooling, free } = state.bridgePool.counts();
  const isExpected = state.isBridgeUsed;
  const blocks = isExpected ? { used, cooling, free } : {};
  metrics.podCidrAddresses.replace(Object.entries(blocks).map(([its, count]) => [{ state: its }, count]));
  metrics.podCidrMissing.set(isExpected && state.blockProblem() !== undefined ? 1 : 0);
}
