import { join } from 'node:path';
import { type RunOptions, type RunResult, run, tryRun } from '../../sim/support/run.ts';
import { waitUntil } from '../support/wait-until.ts';

/** Longest that one kubectl command may take, milliseconds. */
const KUBECTL_TIMEOUT_MS = 60_000;

/** What a person with kubectl and an administrator's kubeconfig can do with a cluster. */
export abstract class Kubectl {
  /** Folder of the cluster's files: `admin.conf` for kubectl, `audit.log` of the API server, a log of each daemon. */
  readonly dir: string;
  /** Folder with the executables of Kubernetes. */
  readonly assets: string;

  constructor(assets: string, dir: string) {
    this.assets = assets;
    this.dir = dir;
  }

  /** The ends of all daemons' logs: errors quote them. */
  abstract logs(): string;

  /** Path of an administrator's kubeconfig that works on this machine. */
  get kubeconfig(): string {
    return join(this.dir, 'admin.conf');
  }

  /** Runs kubectl as the administrator; it must succeed; answers with its standard output. @throws RunError */
  kubectl(...args: readonly string[]): Promise<string> {
    return run(this.#kubectlArgv(args), { timeoutMs: KUBECTL_TIMEOUT_MS });
  }

  /** Runs kubectl as the administrator and returns its answer, failure included. */
  tryKubectl(args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    return tryRun(this.#kubectlArgv(args), { timeoutMs: KUBECTL_TIMEOUT_MS, ...options });
  }

  /** Answers with what `kubectl <args> -o json` prints, parsed. @throws RunError */
  async kubectlJson(...args: readonly string[]): Promise<unknown> {
    return JSON.parse(await this.kubectl(...args, '-o', 'json'));
  }

  /** Applies manifests (YAML, or JSON) as the administrator, server-side. @throws RunError */
  apply(manifests: string): Promise<string> {
    const args = ['apply', '--server-side', '--force-conflicts', '-f', '-'];
    // What begins as JSON is read as JSON alone by kubectl 1.32, which knows no `---` there.
    return run(this.#kubectlArgv(args), { input: `---\n${manifests}`, timeoutMs: KUBECTL_TIMEOUT_MS });
  }

  /** Runs a command in a Pod's container, `namespace/name` or a name in `default`; answers with its standard output. @throws RunError */
  execInPod(pod: string, command: readonly string[]): Promise<string> {
    const [namespace, name] = pod.includes('/') ? pod.split('/', 2) : ['default', pod];
    return this.kubectl('-n', namespace ?? '', 'exec', name ?? '', '--', ...command);
  }

  /** Waits until a kubectl command succeeds, and answers with what it printed then. @throws Error with its last answer */
  async awaitKubectl(args: readonly string[], what: string, timeoutMs = 60_000): Promise<string> {
    let last = '';
    return waitUntil(
      async () => {
        const answer = await this.tryKubectl(args);
        last = `${answer.stdout}${answer.stderr}`;
        return answer.code === 0 && { text: answer.stdout };
      },
      { what, timeoutMs, everyMs: 100, explain: () => `${last}\n${this.logs()}` },
    ).then(({ text }) => text);
  }

  #kubectlArgv(args: readonly string[]): readonly string[] {
    return [join(this.assets, 'kubectl'), `--kubeconfig=${this.kubeconfig}`, ...args];
  }
}
