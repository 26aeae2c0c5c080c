import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { waitUntil } from '../../test/support/wait-until.ts';

/** An API server that is measured beside ipamd. */
export type ScaleApi = {
  readonly url: string;
  readonly token: string;
  readonly ca: string;
  readonly pids: () => { readonly server: number; readonly etcd: number | undefined };
  /** Absent: it keeps nothing. */
  readonly restart?: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Starts the simulated API server as a process of its own, over HTTPS; it collects garbage itself. `dir` gets its certificate. */
export async function startSimulatedApi(dir: string): Promise<ScaleApi> {
  const { cert, certPath, keyPath } = await makeKeyPair(dir, 'apiserver');
  const tls = ['--tls-cert', certPath, '--tls-key', keyPath];
  const child = new Child([process.execPath, 'sim/kube-api/main.ts', ...tls], { env: childEnv() });
  const explain = () => child.stderr;
  const isServing = async () => child.stdout.includes('\n');
  await waitUntil(isServing, { what: 'the simulated API server', timeoutMs: 20_000, everyMs: 50, explain });
  const { url, token } = JSON.parse(child.stdout.split('\n')[0] ?? '{}');
  return {
    ...{ url, token, ca: cert },
    pids: () => ({ server: child.pid, etcd: undefined }),
    close: async () => void (await child.stop()),
  };
}
