import type { ServerUnaryCall, sendUnaryData, UntypedServiceImplementation } from '@grpc/grpc-js';
import { INTERFACE_NAME_RULE, isInterfaceName } from '../../runtime/interface-name.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { type CniFailure, CniFailureError } from '../api/cni-failure.ts';
import { PLUGIN, type Sandbox } from '../api/messages.ts';
import type { AgentMethod, ReplyInitOf, RequestOf, RunReplyInit, RunRequest } from '../api/service.ts';
import type { AttachOutcome } from '../attachment/attach.ts';
import type { AttachCommand } from '../attachment/attach-command.ts';
import type { CheckOutcome } from '../attachment/check.ts';
import { failureOf } from '../attachment/failure-of.ts';
import type { Lease, LeasePlugin } from '../journal/lease.ts';
import { attachmentOf, type EniAddressing } from './attachment.ts';

/** The use cases as the server calls them. None throws: failures are values. */
export type AgentUseCases = {
  attach(command: AttachCommand, signal: AbortSignal): Promise<AttachOutcome>;
  detach(target: { readonly containerId: string; readonly ifName: string }): Promise<CniFailure | undefined>;
  check(target: {
    readonly containerId: string;
    readonly ifName: string;
    readonly netns: string;
  }): Promise<CheckOutcome>;
  status(): CniFailure | undefined;
  collectInvalid(
    network: string,
    valid: readonly { readonly containerId: string; readonly ifName: string }[],
  ): Promise<{ readonly released: number; readonly failed: number }>;
  /** Reports keys of a network configuration that the executables do not use. */
  ignoredKeys(network: string, keys: readonly string[]): void;
  /** How the lease's ENI addresses its Pods; empty when the supply does not list it. */
  addressing(lease: Lease): readonly EniAddressing[];
};

type Answer<Request, Reply> = (request: Request, signal: AbortSignal) => Promise<Reply>;

/** The calls of the executables, each with a failure as a field of its reply. None rejects. */
export type AgentCalls = { readonly [M in AgentMethod]: Answer<RequestOf<M>, ReplyInitOf<M>> };

/** Makes the calls from the use cases. They only translate: messages to commands, outcomes to messages. */
function agentCalls(useCases: AgentUseCases): AgentCalls {
  return {
    add: answering<'add'>((request, signal) => add(useCases, request, signal)),
    del: answering<'del'>((request) => del(useCases, request)),
    check: answering<'check'>((request) => checkCall(useCases, request)),
    status: answering<'status'>(async () => errorField(useCases.status())),
    gc: answering<'gc'>((request) => gc(useCases, request)),
  };
}

function answering<M extends AgentMethod>(
  answer: Answer<RequestOf<M>, ReplyInitOf<M>>,
): Answer<RequestOf<M>, ReplyInitOf<M>> {
  return (request, signal) =>
    answer(request, signal).catch((error: unknown) => errorField(failureOf(error)) as ReplyInitOf<M>);
}

/**
 * Creates the handlers of the gRPC service.
 * @param shutdown Aborts when the agent stops; an ADD that waits for an address then gives up.
 * @param run Runs a call of the launcher. Absent: the launcher gets no answer, and becomes the complete program.
 */
export function agentImplementation(
  useCases: AgentUseCases,
  agentVersion: string,
  shutdown: AbortSignal,
  run?: (calls: AgentCalls, request: RunRequest, signal: AbortSignal) => Promise<RunReplyInit>,
): UntypedServiceImplementation {
  const calls = agentCalls(useCases);
  return {
    add: unary(shutdown, calls.add, agentVersion),
    del: unary(shutdown, calls.del, agentVersion),
    check: unary(shutdown, calls.check, agentVersion),
    status: unary(shutdown, calls.status, agentVersion),
    gc: unary(shutdown, calls.gc, agentVersion),
    ...(run === undefined
      ? {}
      : {
          run: unary<RunRequest, RunReplyInit>(
            shutdown,
            (request, signal) => run(calls, request, signal),
            agentVersion,
          ),
        }),
  };
}

function unary<Request, Reply extends object>(
  shutdown: AbortSignal,
  answer: Answer<Request, Reply>,
  agentVersion: string,
) {
  return (call: ServerUnaryCall<Request, Reply>, reply: sendUnaryData<Reply>): void => {
    const cancelled = new AbortController();
    call.on('cancelled', () => cancelled.abort('the caller went away'));
    answer(call.request, AbortSignal.any([cancelled.signal, shutdown]))
      .then((message) => reply(null, { ...message, agentVersion }))
      .catch((error: unknown) => reply(error instanceof Error ? error : new Error(String(error))));
  };
}

async function add(
  useCases: AgentUseCases,
  request: RequestOf<'add'>,
  signal: AbortSignal,
): Promise<ReplyInitOf<'add'>> {
  const plugin = pluginOf(request.plugin);
  useCases.ignoredKeys(request.network, request.ignoredKeys);
  const sandbox = readSandbox(request.sandbox, { needsNetns: plugin !== 'ipam' });
  const outcome = await useCases.attach(
    {
      ...sandbox,
      plugin,
      network: request.network,
      mtu: request.mtu,
      disableIpv6: request.disableIpv6,
      uplink: plugin === 'ipam' && request.uplink,
      filterPlace: request.filterPlace,
      deadlineAtMs: request.deadlineUnixMs,
    },
    signal,
  );
  if (outcome.kind === 'failed') return { error: outcome.failure };
  if (outcome.kind === 'delegated') {
    return { error: outcome.failure, delegate: { network: outcome.network, confDir: outcome.confDir } };
  }
  return { attachment: attachmentOf(outcome.lease, useCases.addressing(outcome.lease)) };
}

async function del(useCases: AgentUseCases, request: RequestOf<'del'>): Promise<ReplyInitOf<'del'>> {
  // DEL uses the lease alone: whatever else the request contains, or lacks, does not matter.
  return errorField(await useCases.detach(readSandbox(request.sandbox, { needsNetns: false })));
}

async function checkCall(useCases: AgentUseCases, request: RequestOf<'check'>): Promise<ReplyInitOf<'check'>> {
  const needsNetns = pluginOf(request.plugin) !== 'ipam';
  const outcome = await useCases.check(readSandbox(request.sandbox, { needsNetns }));
  if (outcome.kind === 'failed') return { error: outcome.failure };
  return {
    differences: outcome.differences,
    attachment: attachmentOf(outcome.lease, useCases.addressing(outcome.lease)),
  };
}

async function gc(useCases: AgentUseCases, request: RequestOf<'gc'>): Promise<ReplyInitOf<'gc'>> {
  const { released, failed } = await useCases.collectInvalid(request.network, request.validAttachments);
  if (failed === 0) return { released };
  const error: CniFailure = {
    code: CNI_CODE.tryAgainLater,
    msg: `${failed} attachments could not be released yet`,
    details: 'they are tried again; see the log of tke-eni-agent',
  };
  return { released, error };
}

function errorField(failure: CniFailure | undefined): { readonly error?: CniFailure } {
  return failure === undefined ? {} : { error: failure };
}

/** @throws CniFailureError for a plugin that this agent does not serve. */
function pluginOf(plugin: number): LeasePlugin {
  if (plugin === PLUGIN.PLUGIN_ROUTE_ENI) return 'route-eni';
  if (plugin === PLUGIN.PLUGIN_ENI_IPAMC) return 'ipam';
  if (plugin === PLUGIN.PLUGIN_DIRECT_ENI) return 'direct-eni';
  throw new CniFailureError(
    CNI_CODE.unsupportedField,
    `this agent does not serve plugin ${plugin}`,
    'use tke-route-eni',
  );
}

/** @see CNI SPEC, section "Parameters": CNI_CONTAINERID; with this length it fits in an IFLA_IFALIAS of 255 bytes. */
const CONTAINER_ID = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,199}$/;

/**
 * Reads the sandbox of a request. The executable has checked its environment already; this check is for other callers,
 * and because these texts become names in the kernel.
 * @throws CniFailureError 4 naming every fault.
 */
function readSandbox(sandbox: Sandbox | undefined, { needsNetns }: { readonly needsNetns: boolean }): Sandbox {
  const { containerId = '', ifName = '', netns = '', podNamespace = '', podName = '', podUid = '' } = sandbox ?? {};
  const faults: string[] = [];
  if (!CONTAINER_ID.test(containerId)) faults.push(`container id "${containerId}": expected letters, digits, "_.-"`);
  if (!isInterfaceName(ifName)) faults.push(`interface name "${ifName}": expected ${INTERFACE_NAME_RULE}`);
  if (needsNetns && !netns.startsWith('/')) faults.push(`netns "${netns}": expected an absolute path`);
  if (faults.length > 0) {
    throw new CniFailureError(
      CNI_CODE.invalidEnvironment,
      faults.join('; '),
      'see CNI_CONTAINERID, CNI_IFNAME, CNI_NETNS',
    );
  }
  return { containerId, ifName, netns, podNamespace, podName, podUid };
}
