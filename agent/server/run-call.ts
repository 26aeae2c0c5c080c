import type { AgentCall } from '../../cni-plugins/agent-client.ts';
import type { Backend } from '../../cni-plugins/client/backend.ts';
import { CallError } from '../../cni-plugins/client/call-error.ts';
import { run } from '../../cni-plugins/run.ts';
import type { Clock } from '../../runtime/clock.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { decodeMessage, encodeMessage, type InitOf, type MessageTable } from '../api/codec.ts';
import { OUTCOME } from '../api/messages.ts';
import {
  AGENT_METHODS,
  type AgentMethod,
  type ReplyOf,
  type RequestOf,
  type RunReplyInit,
  type RunRequest,
} from '../api/service.ts';
import type { AgentCalls } from './agent-service.ts';

/** What a call of the launcher needs. */
type RunDeps = {
  readonly calls: AgentCalls;
  /** Of this agent: a configuration that names another address is not for it. */
  readonly socketPath: string;
  /** The host's root, as a path of this mount namespace. */
  readonly hostRoot: string;
  readonly clock: Clock;
};

/**
 * Runs a call of the CNI executables in the agent, with the code of the executables. It is not run here when only the
 * process that the runtime started can do so: for another agent, and with plugins of the host. The launcher then becomes
 * the complete program, which makes the call again; each call is idempotent. Never rejects.
 */
export async function runCall(
  { calls, socketPath, hostRoot, clock }: RunDeps,
  { name, env, stdin }: RunRequest,
  signal: AbortSignal,
): Promise<RunReplyInit> {
  let isElsewhere = false;
  const runYourself = (): never => {
    isElsewhere = true;
    throw new CallError('UNREACHABLE', 'the agent does not run this call');
  };
  const callOf = (backend: Backend): AgentCall => {
    if (backend.kind !== 'unix' || backend.path !== socketPath) return runYourself();
    return async (method, request, timeoutMs) => {
      const expired = new AbortController();
      const answer = callHere(
        calls,
        method,
        request as InitOf<MessageTable>,
        AbortSignal.any([signal, expired.signal]),
      );
      const isOver = new AbortController();
      const limit = clock.sleep(timeoutMs, isOver.signal).then(() => {
        expired.abort('the time of the call is over');
        throw new CallError('DEADLINE', `no answer within ${timeoutMs} ms`);
      });
      limit.catch(() => {});
      return await Promise.race([answer, limit]).finally(() => isOver.abort('over'));
    };
  };
  const exit = await run({
    name,
    args: [],
    env: Object.fromEntries(env.map((one) => splitVariable(one))),
    readStdin: () => Buffer.from(stdin).toString('utf8'),
    nowMs: () => clock.nowMs(),
    bootMs: () => clock.bootMs(),
    inAgent: { callOf, runYourself, hostPath: (path) => resolveHostPath(hostRoot, path) },
  });
  if (isElsewhere) return { outcome: OUTCOME.OUTCOME_RUN_YOURSELF };
  return { outcome: OUTCOME.OUTCOME_PRINT, exitCode: exit.code, stdout: Buffer.from(exit.stdout) };
}

/** Calls a handler with the messages that it would get and give over the socket. */
async function callHere<M extends AgentMethod>(
  calls: AgentCalls,
  method: M,
  request: InitOf<MessageTable>,
  signal: AbortSignal,
): Promise<ReplyOf<M>> {
  const tables: { readonly request: MessageTable; readonly reply: MessageTable } = AGENT_METHODS[method];
  const decoded = decodeMessage(tables.request, encodeMessage(tables.request, request)) as RequestOf<M>;
  const reply = await calls[method](decoded, signal);
  return decodeMessage(tables.reply, encodeMessage(tables.reply, reply as InitOf<MessageTable>)) as ReplyOf<M>;
}

function splitVariable(text: string): readonly [name: string, value: string] {
  const at = text.indexOf('=');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
