import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { type RunResult, tryRun } from '../../sim/support/run.ts';

/** One call of a CNI executable. */
export type CniCall = {
  /** Path of the executable, as the runtime would exec it. */
  readonly binary: string;
  readonly command: 'ADD' | 'DEL' | 'CHECK' | 'STATUS' | 'GC' | 'VERSION';
  /** CNI variables; `command` is set already. Left out ones are unset, for tests of wrong input. */
  readonly env?: {
    readonly CNI_CONTAINERID?: string;
    readonly CNI_NETNS?: string;
    readonly CNI_IFNAME?: string;
    readonly CNI_ARGS?: string;
    readonly CNI_PATH?: string;
    readonly [name: string]: string | undefined;
  };
  /** The configuration on standard input; a string goes in as it is. */
  readonly conf: object | string;
  /** Namespace to exec in: path of the node's netns. Default: the caller's. */
  readonly netns?: string;
  /** Milliseconds; default 60,000, more than the executables' own bounds. */
  readonly timeoutMs?: number;
};

/** A CNI error as printed on standard output. */
export type PrintedCniError = { readonly code: number; readonly msg: string; readonly details?: string };

/** What a CNI executable answered. */
export type CniAnswer = {
  /** Exit status. */
  readonly exitCode: number | null;
  /** The printed result, on success; empty for commands that print none. */
  readonly result?: JsonObject;
  /** The printed error, on failure. */
  readonly error?: PrintedCniError;
  readonly stdout: string;
  readonly stderr: string;
};

/** Runs a CNI executable as a runtime does: environment and standard input in, JSON and exit status out. */
export async function execCni(call: CniCall): Promise<CniAnswer> {
  const env: Record<string, string> = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', CNI_COMMAND: call.command };
  for (const [name, value] of Object.entries(call.env ?? {})) if (value !== undefined) env[name] = value;
  const inNetns = call.netns === undefined ? [] : ['nsenter', `--net=${call.netns}`, '--'];
  const input = typeof call.conf === 'string' ? call.conf : JSON.stringify(call.conf);
  return answerOf(await tryRun([...inNetns, call.binary], { env, input, timeoutMs: call.timeoutMs ?? 60_000 }));
}

/** The Kubernetes part of CNI_ARGS, as containerd passes it. */
export function kubernetesArgs(pod: {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
}): string {
  const uid = pod.uid === undefined ? '' : `;K8S_POD_UID=${pod.uid}`;
  return `IgnoreUnknown=1;K8S_POD_NAMESPACE=${pod.namespace};K8S_POD_NAME=${pod.name}${uid}`;
}

function answerOf({ code, stdout, stderr }: RunResult): CniAnswer {
  const base = { exitCode: code, stdout, stderr };
  if (stdout.trim() === '') return base;
  let printed: unknown;
  try {
    printed = JSON.parse(stdout);
  } catch {
    // A caller that expected JSON sees neither result nor error, and the text itself.
    return base;
  }
  if (!isObject(printed)) return base;
  if (code === 0) return { ...base, result: printed };
  const { code: number, msg, details } = printed;
  const error = { code: Number(number), msg: String(msg) };
  return { ...base, error: details === undefined ? error : { ...error, details: String(details) } };
}
