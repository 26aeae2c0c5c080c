import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { createEventRecorder } from '../kube/event-recorder.ts';
import { openKubeClient } from '../kube/open-client.ts';
import { warmThreadPool } from '../netlink/netns.ts';
import { systemClock } from '../runtime/clock.ts';
import { ConfigError } from '../runtime/decode.ts';
import { endProcess } from '../runtime/end-process.ts';
import type { Logger } from '../runtime/log.ts';
import { openPinoLogger } from '../runtime/pino-logger.ts';
import { release } from '../runtime/release.ts';
import { EX_CONFIG } from '../runtime/settings/read-settings.ts';
import { readSettingsText } from '../runtime/settings/settings-file.ts';
import { removeConf, startAgent } from './agent.ts';
import { AgentError } from './api/agent-error.ts';
import type { AgentRuntime } from './components.ts';
import { readAgentConfig } from './config/agent-config.ts';
import type { AgentConfig } from './config/options.ts';
import { openNodeEvents } from './events/node-events.ts';
import { checkDescriptors } from './host/check-descriptors.ts';
import { JournalError } from './journal/journal-error.ts';
import { createKubeTally } from './ops/kube-tally.ts';
import { uninstall } from './uninstall/uninstall.ts';
import { readUninstallConfig } from './uninstall/uninstall-config.ts';

const STDOUT = 1;
const HOUR_MS = 3_600_000;
const REMOVE_CONF = 'remove-conf';
const UNINSTALL = 'uninstall';

async function main(): Promise<void> {
  // Garbage may grow to half of what is live, not to three times: 25 to 35 MiB less at the peak, for 1 % of CPU time.
  // As an option of the start it would make V8 refuse the code cache.
  setFlagsFromString('--heap-growing-percent=50');
  // Threads inherit the network namespace of the moment in which they start: all of them start now, in the host's.
  await warmThreadPool();
  const args = process.argv.slice(2);
  if (args[0] === UNINSTALL) return await runUninstall(args.slice(1));
  const isRemoval = args[0] === REMOVE_CONF;
  const argv = isRemoval ? args.slice(1) : args;
  const outcome = readAgentConfig({ argv, env: process.env, readFile: readSettingsText });
  if (outcome.kind === 'help') return print(outcome.text);
  if (outcome.kind === 'version') return print(`${release}\n`);
  if (isRemoval) return removeConf(outcome.config);
  await run(outcome.config);
}

/** Removes all that is ours from this node. Then ends, or goes on running for a DaemonSet, whose Pods must not end. */
async function runUninstall(argv: readonly string[]): Promise<void> {
  const outcome = readUninstallConfig({ argv, env: process.env, readFile: readSettingsText });
  if (outcome.kind === 'help') return print(outcome.text);
  if (outcome.kind === 'version') return print(`${release}\n`);
  const log = openPinoLogger(outcome.config.logLevel, STDOUT);
  const stop = Promise.withResolvers<NodeJS.Signals>();
  if (outcome.config.afterwards === 'wait') {
    // Before the work: a process that gets a signal to stop as soon as the node is clean ends in order, and not by the
    // signal.
    process.once('SIGTERM', stop.resolve);
    process.once('SIGINT', stop.resolve);
  }
  await uninstall(outcome.config, { clock: systemClock, log });
  if (outcome.config.afterwards === 'exit') return;
  // A pending promise alone does not keep the process running.
  const keepAlive = setInterval(() => {}, HOUR_MS);
  await stop.promise;
  clearInterval(keepAlive);
}

async function run(config: AgentConfig): Promise<void> {
  const log = openPinoLogger(config.logLevel, STDOUT);
  const tooFew = checkDescriptors(readFileSync('/proc/self/limits', 'utf8'));
  if (tooFew !== undefined) log.warn('connections could leave no descriptor for Pods', { why: tooFew });
  const stop = Promise.withResolvers<NodeJS.Signals>();
  process.once('SIGTERM', stop.resolve);
  process.once('SIGINT', stop.resolve);
  const starting = startAgent(config, {
    ...{ clock: systemClock, log, randomBytes, release, random: Math.random },
    ...(config.supplySource === 'cluster' ? createClusterRuntime(config, log) : {}),
  });
  // If it gets a signal to stop before it serves, it has nothing to finish: the journal survives a kill at any moment.
  const agent = await Promise.race([starting, stop.promise]);
  if (typeof agent === 'string') process.exit(0);
  log.info('stopping', { signal: await stop.promise });
  await agent.close();
  process.exit(0);
}

/**
 * Creates the client of the API server. It connects with the first call: an unreachable server does not stop the start.
 * @throws ConfigError
 */
function createClusterRuntime(
  config: AgentConfig,
  log: Logger,
): Required<Pick<AgentRuntime, 'kube' | 'events' | 'kubeUse'>> {
  const { nodeName } = config;
  const common = { clock: systemClock, random: Math.random, log };
  const tally = createKubeTally({ qps: config.kubeClientQps, burst: config.kubeClientBurst }, systemClock);
  const kube = openKubeClient({
    ...common,
    ...(config.kubeconfig === '' ? {} : { kubeconfig: config.kubeconfig }),
    ...(config.master === '' ? {} : { master: config.master }),
    env: process.env,
    qps: config.kubeClientQps,
    burst: config.kubeClientBurst,
    userAgent: `tke-eni-agent/${release}`,
    observer: tally.observer,
  });
  const recorder = createEventRecorder({ ...common, client: kube, component: 'tke-eni-agent', host: nodeName });
  return { kube, kubeUse: tally.use, events: openNodeEvents(recorder, nodeName, log) };
}

function print(text: string): void {
  process.stdout.write(text);
}

main().catch((error: unknown) => {
  if (error instanceof ConfigError) {
    process.stderr.write(`${error.message}\n`);
    return endProcess(process, EX_CONFIG);
  }
  const isExpected = error instanceof AgentError || error instanceof JournalError;
  process.stderr.write(`${isExpected ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  endProcess(process, 1);
});
