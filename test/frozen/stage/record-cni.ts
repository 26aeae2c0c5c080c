import { join } from 'node:path';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import { callExecutable } from '../../cni-plugins/support/call-executable.ts';
import { executablePath } from '../../support/executables.ts';
import type { AgentStage } from './agent-stage.ts';
import { openByteProxy, type Turn } from './byte-proxy.ts';
import { CNI_STEPS, type CniStep, confOf, envOf, NO_SANDBOX } from './cni-steps.ts';
import { messageIn } from './http2.ts';

/** One call as it went: what was asked for, each byte of both sides, and what was answered. */
export type RecordedCall = Pick<CniStep, 'name' | 'plugin' | 'command'> & {
  readonly env: Readonly<Record<string, string>>;
  /** Standard input, with BACKEND for where the agent listened. */
  readonly stdin: string;
  readonly turns: readonly { readonly from: Turn['from']; readonly bytes: string }[];
  /** Where the client's first turn has the deadline, a varint: it would be over when the bytes are sent again. */
  readonly deadline?: { readonly at: number; readonly bytes: number };
  readonly exitCode: number | null;
  readonly stdout: string;
};

/** Takes a recorded value for what it is. @throws Error when it is no recorded call */
export function asRecordedCall(step: CniStep, value: JsonObject): RecordedCall {
  const { env, stdin, turns, deadline, exitCode, stdout } = value;
  if (!isObject(env) || !Array.isArray(turns)) throw new Error(`${step.name}: no recorded call`);
  const place = isObject(deadline)
    ? { deadline: { at: Number(deadline['at']), bytes: Number(deadline['bytes']) } }
    : {};
  return {
    ...{ name: step.name, plugin: step.plugin, command: step.command },
    ...{ stdin: String(stdin), stdout: String(stdout), exitCode: Number(exitCode), ...place },
    env: Object.fromEntries(Object.entries(env).map(([name, text]) => [name, String(text)])),
    turns: turns
      .filter(isObject)
      .map(({ from, bytes }) => ({ from: from === 'client' ? from : 'server', bytes: String(bytes) })),
  };
}

/** Stands in recorded configurations for where the agent listens. */
const BACKEND = 'unix:/run/tke-eni/agent.sock';

/** Puts a socket in the place of where the agent listened. */
export function withBackend(stdin: string, socketPath: string): string {
  return stdin.replaceAll(BACKEND, `unix:${socketPath}`);
}

/** Runs the executables on a stage and records what they and the agent say to each other. */
export async function recordCniCalls(stage: AgentStage): Promise<readonly RecordedCall[]> {
  const socketPath = join(stage.node.dir, 'proxy.sock');
  const proxy = await openByteProxy(socketPath, stage.node.agent.socketPath);
  const calls: RecordedCall[] = [];
  const results = new Map<string, object>();
  try {
    await makeSandboxes(stage);
    for (const step of CNI_STEPS) {
      if (step.ends !== undefined) await stage.end(step.ends);
      const prevResult = results.get(step.after ?? '');
      const stdin = JSON.stringify(confOf(step, BACKEND, prevResult));
      const env = envOf(step);
      const { code, stdout, json } = await callExecutable(
        [executablePath(step.plugin)],
        env,
        withBackend(stdin, socketPath),
      );
      if (json !== undefined) results.set(step.name, json);
      const turns = proxy.connections[calls.length] ?? [];
      calls.push({
        ...{ name: step.name, plugin: step.plugin, command: step.command },
        ...{ env, stdin, exitCode: code, stdout },
        turns: turns.map(({ from, bytes }) => ({ from, bytes: bytes.toString('hex') })),
        ...(step.command === 'ADD'
          ? { deadline: deadlineIn(turns.find(({ from }) => from === 'client')?.bytes ?? Buffer.alloc(0)) }
          : {}),
      });
    }
    return calls;
  } finally {
    proxy.close();
  }
}

/** Makes the sandboxes of all steps. */
export async function makeSandboxes(stage: AgentStage): Promise<void> {
  const names = new Set(CNI_STEPS.flatMap(({ pod }) => pod ?? []).filter((name) => name !== NO_SANDBOX));
  for (const name of names) await stage.pod(name);
}

const DEADLINE_FIELD = 5;
const LENGTH_DELIMITED = 2;

/** Finds field 5 of the request in what a client sent: reads protobuf's tags from front to back. */
function deadlineIn(sent: Buffer): { readonly at: number; readonly bytes: number } {
  const message = messageIn(sent) ?? Buffer.alloc(0);
  const start = sent.indexOf(message);
  for (let at = 0; at < message.length; ) {
    const tag = message.readUInt8(at++);
    const { value, bytes } = varintAt(message, at);
    if (tag >>> 3 === DEADLINE_FIELD) return { at: start + at, bytes };
    at += bytes + ((tag & 7) === LENGTH_DELIMITED ? value : 0);
  }
  throw new Error('no deadline in this request');
}

function varintAt(message: Buffer, at: number): { readonly value: number; readonly bytes: number } {
  const bytes = message.subarray(at).findIndex((byte) => byte < 0x80) + 1;
  const value = [...message.subarray(at, at + bytes)].reduce(
    (sum, byte, index) => sum + (byte & 0x7f) * 2 ** (7 * index),
    0,
  );
  return { value, bytes };
}
