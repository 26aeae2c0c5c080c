import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** One call of a CNI executable. */
export type RuntimeCall = {
  readonly binary: string;
  readonly env: Readonly<Record<string, string>>;
  readonly conf: object;
};

/** What calls at once took: first start to last exit, and the CPU time of their processes with their children, milliseconds. */
type RuntimeSample = { readonly ms: number; readonly cpuMs: number };

/** A small process in a node's namespace that starts CNI executables and times them. */
export type CniRuntime = AsyncDisposable & {
  /** Starts all calls and waits for their ends. @throws Error when one of them fails */
  run(calls: readonly RuntimeCall[]): Promise<RuntimeSample>;
};

// A benchmark's own process has hundreds of megabytes, and a copy of its page tables for each start costs more than an ADD.
// A runtime starts executables by vfork, as posix_spawn does.
const SCRIPT = `
import json, os, sys, time
def start(call):
    inner, outer = os.pipe()
    answer, out = os.pipe()
    os.write(outer, json.dumps(call['conf']).encode())
    os.close(outer)
    actions = [(os.POSIX_SPAWN_DUP2, inner, 0), (os.POSIX_SPAWN_DUP2, out, 1)]
    pid = os.posix_spawn(call['binary'], [call['binary']], call['env'], file_actions=actions)
    os.close(inner)
    os.close(out)
    return pid, answer
for line in sys.stdin:
    calls = json.loads(line)
    began = time.monotonic()
    started = [start(call) for call in calls]
    cpu, failed = 0.0, ''
    for pid, answer in started:
        _, status, usage = os.wait4(pid, 0)
        cpu += usage.ru_utime + usage.ru_stime
        if status != 0: failed = os.read(answer, 65536).decode() or 'status %d' % status
    took = time.monotonic() - began
    for _, answer in started: os.close(answer)
    print(json.dumps({'ms': took * 1000, 'cpuMs': cpu * 1000, 'failed': failed}), flush=True)
`;

/** Opens a runtime in the namespace at `netnsPath`. */
export function openCniRuntime(netnsPath: string): CniRuntime {
  const child = spawn('nsenter', [`--net=${netnsPath}`, '--', 'python3', '-c', SCRIPT], { stdio: 'pipe' });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    run: async (calls) => {
      child.stdin.write(`${JSON.stringify(calls)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the runtime of the benchmark ended: ${await stderrOf(child)}`);
      const { ms, cpuMs, failed } = JSON.parse(value);
      if (failed !== '') throw new Error(`${calls[0]?.binary} failed: ${failed}`);
      return { ms, cpuMs };
    },
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.stdin.end();
      if (child.exitCode === null) await ended;
    },
  };
}

async function stderrOf({ stderr }: ChildProcessWithoutNullStreams): Promise<string> {
  return (await stderr.toArray()).join('').slice(-2_000);
}
