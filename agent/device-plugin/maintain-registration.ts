import { join } from 'node:path';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { ChangeSignal } from '../../runtime/change-signal.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { fileIdentity } from '../../runtime/file-identity.ts';
import { watchFolder } from '../../runtime/watch-folder.ts';
import type { AgentParts } from '../state/ports.ts';
import { KubeletError, type Registration, register } from './kubelet-client.ts';
import type { PluginEndpoint } from './plugin-endpoint.ts';

/**
 * The result of a registration with kubelet. `silent`: kubelet accepted it and never asked for the devices; `unserved`:
 * our own socket cannot be created.
 */
type RegistrationOutcome = 'registered' | 'refused' | 'unreachable' | 'silent' | 'unserved';

/** Dependencies of staying registered. */
export type RegistrationDeps = Pick<AgentParts, 'clock' | 'log'> & {
  /** Folder of kubelet's socket and of ours. */
  readonly directory: string;
  readonly registration: Registration;
  readonly endpoint: PluginEndpoint;
  /** Notified when kubelet begins or ends to watch the endpoint. */
  readonly watchesChanged: ChangeSignal;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  /** Called after each attempt. */
  readonly attempted: (outcome: RegistrationOutcome) => void;
  /** Called once when registration has failed for a minute. */
  readonly failsForLong: (why: string) => void;
};

/** Name of kubelet's own socket. @see k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 KubeletSocket */
const KUBELET_SOCKET = 'kubelet.sock';
/** Poll interval, in case a notification was missed. */
const POLL_MS = 1_000;
/** Poll interval while there is no kubelet: its folder may not exist, and then it cannot be watched. */
const ABSENT_POLL_MS = 200;
/**
 * Timeout of a registration. Kubelet answers in milliseconds; one that hangs is tried again when its socket is
 * replaced, or after this.
 */
const REGISTER_MS = 10_000;
/** How long kubelet may take to call back after a registration; normally it does at once. */
const WATCH_MS = 5_000;
const BACKOFF: BackoffSettings = { firstMs: 50, maxMs: 10_000, factor: 2, jitter: 0.3 };
/** A watch that lasted this long was a success; one that ends sooner counts as one more failure. */
const STEADY_MS = 10_000;
const REPORT_AFTER_MS = 60_000;

/**
 * Keeps the plugin registered with the kubelet that runs, until aborted: registers at once when kubelet's socket is
 * replaced, and with growing waits when kubelet refuses or ends the watch. Never rejects.
 */
export async function maintainRegistration(deps: RegistrationDeps, signal: AbortSignal): Promise<void> {
  const { directory, endpoint, clock, random } = deps;
  const kubeletSocket = join(directory, KUBELET_SOCKET);
  const changed = deps.watchesChanged;
  const folder = watchFolder(directory, () => changed.notify());
  const failureLog = openFailureLog(deps);
  let known: string | undefined;
  let failures = 0;
  let isRewriting = false;
  let registeredMs: number | undefined;
  while (!signal.aborted) {
    folder.renew();
    const kubelet = fileIdentity(kubeletSocket);
    const isOther = kubelet !== known;
    if (kubelet === undefined) {
      known = undefined;
      registeredMs = undefined;
      failureLog.absent(`${kubeletSocket}: no such socket; kubelet does not run, or its folder is not mounted here`);
      await changed.wait(ABSENT_POLL_MS, signal);
      continue;
    }
    if (!isOther && registeredMs !== undefined && endpoint.isWatched()) {
      if (clock.monotonicMs() - registeredMs >= STEADY_MS) failures = 0;
      // Does nothing unless our socket was removed. Kubelet's connection goes on without it, so a failure is not
      // urgent.
      await endpoint.serve().catch(() => undefined);
      await changed.wait(POLL_MS, signal);
      continue;
    }
    if (isOther) failures = 0;
    else if (failures > 0 && (await isReplacedWithin(backoffMs(BACKOFF, failures, random())))) continue;
    known = kubelet;
    const error = await untilReplaced(kubelet, (attempt) => registerOnce(deps, kubeletSocket, attempt));
    registeredMs = error === undefined ? clock.monotonicMs() : undefined;
    failures++;
    if (error === 'given up') continue;
    failureLog.attempted(error);
    // A kubelet that accepts the registration and does not call back may be older than 1.26: its requests have to be
    // rewritten.
    if (error?.outcome !== 'silent') continue;
    isRewriting = !isRewriting;
    endpoint.setAuthorityRewriting(isRewriting);
  }
  folder.close();

  /** Waits; returns true when kubelet's socket is replaced or removed before the time is over. */
  async function isReplacedWithin(ms: number): Promise<boolean> {
    const endMs = clock.monotonicMs() + ms;
    for (let leftMs = ms; leftMs > 0 && !signal.aborted; leftMs = endMs - clock.monotonicMs()) {
      if (fileIdentity(kubeletSocket) !== known) return true;
      await changed.wait(Math.min(leftMs, POLL_MS), signal);
    }
    return signal.aborted;
  }

  /** Aborts an attempt as soon as the kubelet that it is for is replaced. */
  async function untilReplaced(
    kubelet: string,
    run: (attempt: AbortSignal) => Promise<AttemptFailure | undefined>,
  ): Promise<AttemptFailure | 'given up' | undefined> {
    const attempt = new AbortController();
    const abort = (): void => attempt.abort('kubelet was replaced');
    signal.addEventListener('abort', abort, { once: true });
    const poll = async (): Promise<void> => {
      while (!attempt.signal.aborted) {
        await changed.wait(POLL_MS, attempt.signal);
        if (fileIdentity(kubeletSocket) !== kubelet) abort();
      }
    };
    const polling = poll();
    try {
      const failure = await run(attempt.signal);
      return attempt.signal.aborted ? 'given up' : failure;
    } finally {
      attempt.abort('over');
      await polling;
      signal.removeEventListener('abort', abort);
    }
  }
}

type AttemptFailure = { readonly outcome: Exclude<RegistrationOutcome, 'registered'>; readonly text: string };

/**
 * Registers and waits until kubelet watches. Earlier watches are ended first: when one ends later, kubelet removes
 * whatever is registered under the resource's name then, the new registration included.
 * @see kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go runClient
 */
async function registerOnce(
  { registration, endpoint, watchesChanged, clock }: RegistrationDeps,
  kubeletSocket: string,
  signal: AbortSignal,
): Promise<AttemptFailure | undefined> {
  try {
    endpoint.endWatches();
    await endpoint.serve();
  } catch (error) {
    return { outcome: 'unserved', text: `cannot listen on ${registration.socketName}: ${messageOf(error)}` };
  }
  try {
    await register(kubeletSocket, registration, { timeoutMs: REGISTER_MS, signal });
  } catch (error) {
    const isRefusal = error instanceof KubeletError && error.code === 'KUBELET_REFUSED';
    return { outcome: isRefusal ? 'refused' : 'unreachable', text: messageOf(error) };
  }
  const endMs = clock.monotonicMs() + WATCH_MS;
  while (!endpoint.isWatched() && !signal.aborted) {
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) return { outcome: 'silent', text: 'kubelet took the registration and does not ask for devices' };
    await watchesChanged.wait(leftMs, signal);
  }
  return undefined;
}

/** Logs each kind of failure once, and reports a failure that lasts. */
function openFailureLog({ registration, clock, log, attempted, failsForLong }: RegistrationDeps): {
  absent(why: string): void;
  attempted(failure: AttemptFailure | undefined): void;
} {
  const { resource } = registration;
  let lastKind: string | undefined;
  let failingMs: number | undefined;
  let isReported = false;
  // Kinds are compared and not texts: the text of one failure differs between attempts by a time or a port.
  const fails = (kind: string, text: string): void => {
    const nowMs = clock.monotonicMs();
    failingMs ??= nowMs;
    if (lastKind !== kind) log.warn('device plugin is not registered, will be tried again', { resource, error: text });
    lastKind = kind;
    if (isReported || nowMs - failingMs < REPORT_AFTER_MS) return;
    isReported = true;
    failsForLong(text);
  };
  return {
    absent: (why) => fails('absent', why),
    attempted: (failure) => {
      attempted(failure?.outcome ?? 'registered');
      if (failure !== undefined) return fails(failure.outcome, failure.text);
      lastKind = undefined;
      failingMs = undefined;
      isReported = false;
      return log.info('device plugin is registered', { resource });
    },
  };
}
