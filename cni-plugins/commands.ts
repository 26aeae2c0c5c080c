import { CNI_CODE } from '../agent/api/cni-code.ts';
import type { CniError as CniErrorMessage, Sandbox } from '../agent/api/messages.ts';
import { messageOf } from '../runtime/error-text.ts';
import { release } from '../runtime/release.ts';
import type { AgentCall } from './agent-client.ts';
import { CallError } from './client/call-error.ts';
import type { Delegate } from './delegate/delegate.ts';
import type { PortMapper } from './map-ports.ts';
import type { Plugins } from './plugin-calls.ts';
import { PLUGINS, type PluginName } from './plugins.ts';
import { DEFAULT_BACKEND, type PluginConf } from './skel/conf.ts';
import type { CniEnv } from './skel/env.ts';
import { CniError } from './skel/error.ts';
import { comparePrevResult, makeOldResult, makeResult } from './skel/result.ts';

/**
 * Executes one command by a call to the agent.
 *
 * @returns the text to print on success, empty for none.
 * @throws CniError the agent's error, or one of the executable when the agent does not answer.
 */
export async function execute(context: Context): Promise<string> {
  switch (context.env.command) {
    case 'ADD':
      return add(context);
    case 'DEL':
      return del(context);
    case 'CHECK':
      return check(context);
    case 'STATUS':
      return status(context);
    case 'GC':
      return gc(context);
    case 'VERSION':
      return '';
  }
}

/** A command with everything that it needs. */
export type Context = {
  readonly plugin: PluginName;
  readonly env: CniEnv;
  readonly conf: PluginConf;
  readonly call: AgentCall;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** How long the launcher has worked on this call, ms; subtracted from the time limit. Default 0. */
  readonly spentMs?: number;
  /** Stores a DEL for an agent that does not answer. */
  readonly spool: Spool;
  /** Opens the other plugins of the node. Loaded on demand: few Pods have a hostPort. */
  readonly openPlugins: () => Promise<Plugins>;
  /** Networks that other plugins make. */
  readonly delegation: Delegation;
};

/** The port to networks of other plugins; `delegate/delegate.ts` implements it. */
export type Delegation = {
  /** Whether other plugins made the interface of this call, or any at all. Cheap: few Pods have one. */
  readonly isUsed: (of: 'interface' | 'node') => boolean;
  /** Loaded on demand. */
  readonly open: () => Promise<Delegate>;
};

/** The port to the folder of stored DELs; `spool.ts` implements it. */
export type Spool = {
  /** Stores a DEL. Returns a function that removes it again. */
  readonly store: (sandbox: Sandbox, network: string) => Promise<() => void>;
};

/**
 * Time limits of one call to the agent in ms, when the conf has none. ADD: longer than the agent's own wait for an
 * address.
 */
const TIMEOUT_MS = { ADD: 40_000, DEL: 8_000, CHECK: 15_000, STATUS: 2_000, GC: 60_000 } as const;

/**
 * The second attempt of a DEL only reaches an agent that has restarted meanwhile; it must not wait again for one that
 * is stuck.
 */
const SECOND_TRY_MS = 1_000;

/** Whatever was spent before, the agent gets this time. */
const MIN_TIMEOUT_MS = 1_000;

function timeoutMsOf({ conf, spentMs = 0 }: Context, defaultMs: number): number {
  const limitMs = conf.timeoutMs ?? defaultMs;
  return Math.max(Math.min(limitMs, MIN_TIMEOUT_MS), limitMs - spentMs);
}

async function add(context: Context): Promise<string> {
  const { plugin, conf, env, call, nowMs } = context;
  const timeoutMs = timeoutMsOf(context, TIMEOUT_MS.ADD);
  const ports = hasPorts(context) ? await openPorts(context) : undefined;
  const request = {
    plugin: PLUGINS[plugin],
    sandbox: sandboxOf(env),
    network: conf.name,
    mtu: conf.mtu,
    deadlineUnixMs: nowMs() + timeoutMs,
    disableIpv6: conf.disableIPv6,
    clientVersion: release,
    uplink: conf.uplink,
    ignoredKeys: conf.ignoredKeys,
    filterPlace: conf.filterPlace,
  };
  const reply = await call('add', request, timeoutMs).catch((error) => throwUnanswered(context, error));
  // On a TCP port another process may answer in the agent's place: it must not choose what runs as root.
  if (reply.delegate !== undefined && conf.backend.startsWith('unix:')) {
    const { confDir, network } = reply.delegate;
    return (await context.delegation.open()).add(confDir, network, reply.error?.msg ?? '');
  }
  throwIfRefused(reply.error);
  if (reply.attachment === undefined) {
    throw new CniError(CNI_CODE.tryAgainLater, `the agent on ${conf.backend} answered neither an address nor an error`);
  }
  // When anything fails from here on the runtime sends a DEL, as for any ADD that failed.
  if (conf.uplink && reply.attachment.interfaces.length === 0) {
    throw new CniError(
      CNI_CODE.unsupportedField,
      `ipam.uplink: the agent on ${conf.backend} is of a release without it, and keeps the rules of the address itself`,
      'upgrade tke-eni-agent on this node, or take uplink out of the network configuration',
    );
  }
  ports?.map(reply.attachment);
  const result =
    conf.cniVersion === '0.2.0'
      ? makeOldResult(conf, reply.attachment)
      : makeResult(conf, reply.attachment, shapeOf(plugin));
  return JSON.stringify(result);
}

/** Reports whether ports of the node lead to this Pod. As an IPAM plugin we get the conf of the main plugin, whose they are. */
function hasPorts({ plugin, conf }: Context): boolean {
  return shapeOf(plugin) === 'main' && conf.portMappings.length > 0;
}

async function openPorts({ conf, openPlugins }: Context): Promise<PortMapper> {
  const { openPortMapper } = await import('./map-ports.ts');
  return openPortMapper(conf, await openPlugins());
}

/**
 * Releases an attachment. A runtime cannot delete a sandbox whose DEL fails, so a node with a stopped agent would fill
 * with dead Pods. Therefore the DEL is stored on disk, and the agent keeps address and lease until it has processed it.
 */
async function del(context: Context): Promise<string> {
  const { plugin, conf, env, call, openPlugins } = context;
  if (hasPorts(context)) {
    const { unmapPorts } = await import('./map-ports.ts');
    unmapPorts(conf, await openPlugins());
  }
  if (context.delegation.isUsed('interface')) (await context.delegation.open()).del();
  const sandbox = sandboxOf(env);
  const request = { plugin: PLUGINS[plugin], sandbox, network: conf.name, clientVersion: release };
  const timeoutMs = timeoutMsOf(context, TIMEOUT_MS.DEL);
  const first = await call('del', request, timeoutMs).catch(unlessAnswered);
  if (!(first instanceof CallError)) return throwIfRefused(first.error);
  const stored = await storeDeletion(context, sandbox);
  // An agent that started between the two steps may have drained the folder before the file existed; so call it again.
  const second = await call('del', request, Math.min(timeoutMs, SECOND_TRY_MS)).catch(unlessAnswered);
  if (stored.kind === 'failed') {
    if (second instanceof CallError) throw spoolFailed(context, first, stored.cause);
    return throwIfRefused(second.error);
  }
  if (!(second instanceof CallError) && second.error === undefined) stored.remove();
  return '';
}

async function storeDeletion({ spool, conf }: Context, sandbox: Sandbox): Promise<StoreOutcome> {
  try {
    return { kind: 'kept', remove: await spool.store(sandbox, conf.name) };
  } catch (cause) {
    return { kind: 'failed', cause };
  }
}

type StoreOutcome =
  | { readonly kind: 'kept'; readonly remove: () => void }
  | { readonly kind: 'failed'; readonly cause: unknown };

async function check(context: Context): Promise<string> {
  const { plugin, conf, env, call, delegation } = context;
  if (delegation.isUsed('interface') && (await delegation.open()).check()) return '';
  const { prevResult } = conf;
  const request = {
    plugin: PLUGINS[plugin],
    sandbox: sandboxOf(env),
    network: conf.name,
    prevResult: Buffer.from(JSON.stringify(prevResult?.raw ?? {})),
    clientVersion: release,
  };
  const timeoutMs = timeoutMsOf(context, TIMEOUT_MS.CHECK);
  const reply = await call('check', request, timeoutMs).catch((error) => throwUnanswered(context, error));
  throwIfRefused(reply.error);
  const compared =
    prevResult === undefined ? [] : comparePrevResult(prevResult, reply.attachment, env.ifName, shapeOf(plugin));
  const differences = [...reply.differences, ...compared];
  if (differences.length > 0) {
    const what = `${env.containerId} ${env.ifName}: ${differences.length} difference(s) from what ADD made`;
    throw new CniError(CNI_CODE.checkFailed, what, differences.join('\n'));
  }
  return '';
}

async function status(context: Context): Promise<string> {
  const { plugin, call } = context;
  const request = { plugin: PLUGINS[plugin], clientVersion: release };
  const timeoutMs = timeoutMsOf(context, TIMEOUT_MS.STATUS);
  const reply = await call('status', request, timeoutMs).catch((error) =>
    throwUnanswered(context, error, CNI_CODE.notAvailable),
  );
  return throwIfRefused(reply.error);
}

/**
 * Releases what the runtime does not list. Without a list nothing says which sandboxes live but the container runtime
 * and the namespaces: the agent asks both each minute and releases what is gone by both, so nothing is left to do here.
 */
async function gc(context: Context): Promise<string> {
  const { plugin, conf, call, delegation } = context;
  if (conf.validAttachments === undefined) return '';
  if (delegation.isUsed('node')) (await delegation.open()).gc(conf.validAttachments);
  const request = {
    plugin: PLUGINS[plugin],
    network: conf.name,
    validAttachments: conf.validAttachments.map(({ containerID, ifname }) => ({
      containerId: containerID,
      ifName: ifname,
    })),
    clientVersion: release,
  };
  const timeoutMs = timeoutMsOf(context, TIMEOUT_MS.GC);
  const reply = await call('gc', request, timeoutMs).catch((error) => throwUnanswered(context, error));
  return throwIfRefused(reply.error);
}

function sandboxOf({ containerId, ifName, netns, args }: CniEnv): Sandbox {
  return { containerId, ifName, netns, ...args };
}

function shapeOf(plugin: PluginName): 'main' | 'ipam' {
  return plugin === 'tke-eni-ipamc' ? 'ipam' : 'main';
}

/** Throws the error of a reply; otherwise returns the text to print on success, which is empty. */
function throwIfRefused(error: CniErrorMessage | undefined): '' {
  if (error === undefined) return '';
  // 0 is not a CNI error code; a runtime could take it for success.
  throw new CniError(error.code === 0 ? CNI_CODE.internal : error.code, error.msg, error.details);
}

/** Returns a missing answer as a value; throws every other error again. */
function unlessAnswered(error: unknown): CallError {
  if (error instanceof CallError) return error;
  throw error;
}

function throwUnanswered({ conf, env }: Context, error: unknown, code: number = CNI_CODE.tryAgainLater): never {
  if (!(error instanceof CallError)) throw error;
  const tried = `${env.command}: ${error.code}: ${error.message}`;
  throw new CniError(code, `the agent on ${conf.backend} does not answer`, `${tried}; ${nextStepOf(conf)}`, {
    cause: error,
  });
}

function spoolFailed({ conf }: Context, error: CallError, cause: unknown): CniError {
  const reason = messageOf(cause);
  return new CniError(
    CNI_CODE.io,
    `the agent on ${conf.backend} does not answer and the DEL cannot be left for it: ${reason}`,
    `DEL: ${error.code}: ${error.message}; free space in the folder, or allow writing to it; ${nextStepOf(conf)}`,
    { cause },
  );
}

/** On TCP the agent listens only where it is asked to, and closes the connections of any user but root. */
function nextStepOf({ backend }: PluginConf): string {
  if (backend.startsWith('unix:')) return NEXT_STEP;
  return `the agent serves TCP only with its flag --listen-address=${backend}, and only root; or name "${DEFAULT_BACKEND}" as backend; ${NEXT_STEP}`;
}

const NEXT_STEP =
  'see whether the tke-eni-agent Pod of this node runs and what it logs: kubectl -n kube-system get pods -o wide | grep tke-eni-agent';
