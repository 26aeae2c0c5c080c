import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { CallFailures } from '../kube/call-failures.ts';
import { createEventRecorder } from '../kube/event-recorder.ts';
import { openConfiguredClient } from '../kube/open-configured-client.ts';
import { warmThreadPool } from '../netlink/netns.ts';
import { endByError } from '../runtime/background.ts';
import { startInterval, systemClock } from '../runtime/clock.ts';
import { openPinoLogger } from '../runtime/pino-logger.ts';
import {
  type DaemonRuntime,
  type RunningDaemon,
  runCommand,
  runDaemon,
  runProgram,
  stopSignal,
} from '../runtime/program.ts';
import { startAgent } from './agent.ts';
import { AgentError } from './api/agent-error.ts';
import type { AgentRuntime } from './components.ts';
import { AGENT_PROGRAM, readAgentConfig } from './config/agent-config.ts';
import type { AgentConfig } from './config/options.ts';
import { openNodeEvents } from './events/node-events.ts';
import { checkDescriptors } from './host/check-descriptors.ts';
import { withdrawConflist } from './install/conflist.ts';
import { JournalError } from './journal/journal-error.ts';
import { openMachine } from './machine.ts';
import { createKubeTally } from './ops/kube-tally.ts';
import { trackAgentCalls } from './supply/api-failures.ts';
import { uninstall } from './uninstall/uninstall.ts';
import { readUninstallConfig, type UninstallConfig } from './uninstall/uninstall-config.ts';

const { name: NAME } = AGENT_PROGRAM;
const STDOUT = 1;
const HOUR_MS = 3_600_000;

async function main(): Promise<void> {
  // Garbage may grow to half of what is live, not to three times: 25 to 35 MiB less at the peak, for 1 % of CPU time.
  // As an option of the start it would make V8 refuse the code cache.
  setFlagsFromString('--heap-growing-percent=50');
  // Threads inherit the network namespace of the moment in which they start: all of them start now, in the host's.
  await warmThreadPool();
  const [command, ...argv] = process.argv.slice(2);
  if (command === 'uninstall') return await runCommand(process, argv, readUninstallConfig, runUninstall);
  if (command === 'remove-conf')
    return await runCommand(process, argv, readAgentConfig, async ({ cniConfDir }) => withdrawConflist(cniConfDir));
  await runDaemon(process, readAgentConfig, start);
}

/** Removes all that is ours from this node. Then ends, or goes on running for a DaemonSet, whose Pods must not end. */
async function runUninstall(config: UninstallConfig): Promise<void> {
  const log = openPinoLogger(config.logLevel, STDOUT);
  // Before the work: a process that gets a signal to stop as soon as the node is clean ends in order, and not by the
  // signal.
  const stopped = config.afterwards === 'wait' ? stopSignal(process) : undefined;
  await uninstall(config, { clock: systemClock, log });
  if (stopped === undefined) return;
  // A pending promise alone does not keep the process running.
  const keepAlive = startInterval(() => {}, HOUR_MS);
  await stopped;
  keepAlive.cancel();
}

async function start(config: AgentConfig, runtime: DaemonRuntime): Promise<RunningDaemon> {
  const tooFew = checkDescriptors(readFileSync('/proc/self/limits', 'utf8'));
  if (tooFew !== undefined) runtime.log.warn('connections could leave no descriptor for Pods', { why: tooFew });
  const cluster = config.supplySource !== 'file' ? createClusterRuntime(config, runtime) : {};
  const starting = startAgent(config, {
    ...runtime,
    host: openMachine(config, runtime),
    failed: endByError,
    randomBytes,
    ...cluster,
  });
  // If it gets a signal to stop before it serves, it has nothing to finish: the journal survives a kill at any moment.
  const agent = await Promise.race([starting, runtime.stopped]);
  if (typeof agent === 'string') process.exit(0);
  return agent;
}

/**
 * Creates the client of the API server, which connects with the first call.
 * @throws ConfigError
 */
function createClusterRuntime(
  config: AgentConfig,
  runtime: DaemonRuntime,
): Required<Pick<AgentRuntime, 'kube' | 'apiFailures' | 'events' | 'kubeUse'>> {
  const { nodeName } = config;
  const { clock, log } = runtime;
  const tally = createKubeTally({ qps: config.kubeClientQps, burst: config.kubeClientBurst }, clock);
  const apiFailures = new CallFailures(clock);
  const client = openConfiguredClient(NAME, config, { ...runtime, env: process.env, observer: tally.observer });
  const kube = trackAgentCalls(client, apiFailures);
  const recorder = createEventRecorder({ ...runtime, client: kube, component: NAME, host: nodeName });
  return { kube, apiFailures, kubeUse: tally.use, events: openNodeEvents(recorder, nodeName, log) };
}

runProgram(process, main, (error) => error instanceof AgentError || error instanceof JournalError);
