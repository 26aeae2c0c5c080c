import { hostname } from 'node:os';
import { type Clock, startTimer, systemClock } from './clock.ts';
import { ConfigError } from './decode.ts';
import { messageOf } from './error-text.ts';
import type { Logger } from './log.ts';
import { openPinoLogger } from './pino-logger.ts';
import { type ProcessUsage, readUsage } from './process-usage.ts';
import { readRegularText } from './read-regular-file.ts';
import { release } from './release.ts';
import { EX_CONFIG, type SettingsInput, type SettingsOutcome } from './settings/read-settings.ts';

/** What of `process` a program uses; each main.ts gives it. */
type Host = Pick<
  NodeJS.Process,
  'argv' | 'env' | 'exit' | 'exitCode' | 'once' | 'stdout' | 'stderr' | 'memoryUsage' | 'cpuUsage'
>;

const STDOUT = 1;

/**
 * Runs a program to its end. An error is printed, and the exit code is `EX_CONFIG` for wrong settings and 1 for any other.
 * @param isExpected Tells errors whose message says all; of others, which are faults of ours, the stack is printed.
 */
export function runProgram(host: Host, main: () => Promise<void>, isExpected: (error: unknown) => boolean): void {
  main().catch((error: unknown) => {
    const isWrongSetting = error instanceof ConfigError;
    const hasStack = error instanceof Error && !isWrongSetting && !isExpected(error);
    host.stderr.write(`${hasStack ? error.stack : messageOf(error)}\n`);
    endProcess(host, isWrongSetting ? EX_CONFIG : 1);
  });
}

/** Reads settings, and calls `run` with them; with `--help` or `--version` prints that instead. @throws ConfigError */
export async function runCommand<S>(
  host: Host,
  argv: readonly string[],
  read: (input: SettingsInput) => SettingsOutcome<S>,
  run: (config: S) => Promise<void>,
): Promise<void> {
  const outcome = read({ argv, env: host.env, readFile: readSettingsText });
  if (outcome.kind === 'run') return await run(outcome.config);
  host.stdout.write(outcome.kind === 'help' ? outcome.text : `${release}\n`);
}

/** What every daemon gets for its start. */
export type DaemonRuntime = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly release: string;
  /** Name of this replica: of its Pod, or else of its host. */
  readonly identity: string;
  readonly usage: () => ProcessUsage;
  /** The first signal to end. */
  readonly stopped: Promise<NodeJS.Signals>;
  /** Aborted by that signal, for the wait for a first certificate. */
  readonly starting: AbortSignal;
};

/** A daemon that runs. `ended` resolves when it has ended, and rejects with a fault; a daemon without it ends by `close` alone. */
export type RunningDaemon = { readonly ended?: Promise<void>; close(): Promise<void> };

/**
 * Reads settings, starts a daemon with them, and closes it on SIGTERM or SIGINT, or when it has ended by itself.
 * @param start Returns undefined when it has done all that the settings ask for.
 * @throws ConfigError, and what `start` and the daemon throw
 */
export async function runDaemon<S extends { readonly logLevel: Parameters<typeof openPinoLogger>[0] }>(
  host: Host,
  read: (input: SettingsInput) => SettingsOutcome<S>,
  start: (config: S, runtime: DaemonRuntime) => Promise<RunningDaemon | undefined>,
): Promise<void> {
  await runCommand(host, host.argv.slice(2), read, async (config) => {
    const log = openPinoLogger(config.logLevel, STDOUT);
    const starting = new AbortController();
    const stopped = stopSignal(host, (signal) =>
      starting.abort(new Error(`ended by ${signal} before there was a certificate`)),
    );
    const daemon = await start(config, {
      ...{ clock: systemClock, log, random: Math.random, release, stopped, starting: starting.signal },
      identity: host.env['POD_NAME'] ?? hostname(),
      usage: () => readUsage(host),
    });
    if (daemon === undefined) return;
    const signal = await Promise.race([stopped, ...(daemon.ended === undefined ? [] : [daemon.ended])]);
    if (signal !== undefined) log.info('stopping', { signal });
    await daemon.close();
    await daemon.ended;
    host.exit(0);
  });
}

/** Resolves with the first SIGTERM or SIGINT, which from now on do not end the process by themselves. */
export function stopSignal(
  host: Pick<Host, 'once'>,
  onStop: (signal: NodeJS.Signals) => void = () => {},
): Promise<NodeJS.Signals> {
  const stop = Promise.withResolvers<NodeJS.Signals>();
  const listener = (signal: NodeJS.Signals): void => {
    stop.resolve(signal);
    onStop(signal);
  };
  host.once('SIGTERM', listener);
  host.once('SIGINT', listener);
  return stop.promise;
}

/** How long a process that ends waits for what is still open, milliseconds. */
const GRACE_MS = 500;

/**
 * Ends a process with an exit code as soon as nothing is open any more, and after half a second whatever is. Not by `exit` at
 * once: it joins V8's worker threads without a collection of garbage that one of them may wait for, and then the process never
 * ends. Seen with Node 26 where a process ends while its code is still being compiled, shortly after its start.
 */
function endProcess(host: Pick<Host, 'exitCode' | 'exit'>, code: number): void {
  host.exitCode = code;
  startTimer(() => host.exit(code), GRACE_MS).unref();
}

/** Largest settings file that is read, bytes. One with every setting has some kB. */
const MAX_BYTES = 1024 * 1024;

/**
 * Reads the text of a settings file: the `readFile` of each program.
 * @throws FileError when it is no regular file or too large; the file system's own error
 */
function readSettingsText(path: string): string {
  return readRegularText(path, MAX_BYTES);
}
