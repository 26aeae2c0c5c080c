import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { TencentApi } from '../../../cloud/tencent/requests.ts';
import type { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import type { readIpamdConfig } from '../../../ipamd/config/ipamd-config.ts';
import type { startIpamd } from '../../../ipamd/ipamd.ts';
import type { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { createTempDir } from '../../support/temp-dir.ts';

/** The commit of release 0.1.0. */
const FORMER = '330de91';
const ROOT = join(import.meta.dirname, '../../..');

/** ipamd of the release before, as far as today's tests start it. */
export type FormerIpamd = {
  readonly startIpamd: typeof startIpamd;
  readonly readIpamdConfig: typeof readIpamdConfig;
  readonly createTencentCloud: typeof createTencentCloud;
  readonly createIpamdMetrics: typeof createIpamdMetrics;
  /** A client whose errors are those of that release. */
  kube(client: KubeClient): KubeClient;
  api(api: TencentApi): TencentApi;
  close(): void;
};

/** Opens the sources of the release before from the history of the repository; undefined where it has none. */
export async function openFormerIpamd(): Promise<FormerIpamd | undefined> {
  const folder = createTempDir('former-ipamd');
  try {
    const parts = ['ipamd', 'cloud', 'kube', 'crd', 'runtime', 'package.json'];
    const tar = execFileSync('git', ['archive', FORMER, ...parts], { cwd: ROOT, maxBuffer: 1 << 28, stdio: 'pipe' });
    execFileSync('tar', ['x', '-C', folder.path], { input: tar });
  } catch {
    folder.close();
    return undefined;
  }
  symlinkSync(join(ROOT, 'node_modules'), folder.join('node_modules'));
  const load = async (file: string) => await import(folder.join(file));
  const [{ CloudError }, { KubeError }] = [await load('cloud/cloud-error.ts'), await load('kube/kube-error.ts')];
  return {
    ...(await load('ipamd/ipamd.ts')),
    ...(await load('ipamd/config/ipamd-config.ts')),
    ...(await load('cloud/tencent/tencent-cloud.ts')),
    ...(await load('ipamd/observability/metrics.ts')),
    kube: (client) => translated(client, 'KubeError', KubeError),
    api: (api) => translated(api, 'CloudError', CloudError),
    close: () => folder.close(),
  };
}

/** The same object, whose methods fail with another class of error of the same fields. */
function translated<T extends object>(target: T, name: string, Class: new (fields: object) => Error): T {
  const rethrow = (error: unknown): never => {
    throw error instanceof Error && error.name === name ? new Class(error) : error;
  };
  const wrap = (result: unknown): unknown => {
    if (result instanceof Promise) return result.then(wrap, rethrow);
    if (typeof result === 'object' && result !== null && Symbol.asyncIterator in result)
      return iterated(result, rethrow);
    return result;
  };
  const methods = Object.entries(target).map(([key, value]: [string, unknown]) => {
    if (typeof value !== 'function') return [key, value] as const;
    const method = (...args: readonly unknown[]): unknown => {
      try {
        return wrap(Reflect.apply(value, target, args));
      } catch (error) {
        return rethrow(error);
      }
    };
    return [key, method] as const;
  });
  // The same methods with the same results.
  return Object.fromEntries(methods) as T;
}

async function* iterated(source: object, rethrow: (error: unknown) => never): AsyncGenerator {
  try {
    // It was asked for before.
    yield* source as AsyncIterable<unknown>;
  } catch (error) {
    rethrow(error);
  }
}
