import { release } from '../runtime/release.ts';
import type { ConnectionSettings } from './connection-options.ts';
import { type KubeClientOptions, type OpenKubeClient, openKubeClient } from './open-client.ts';

/**
 * Opens a program's client of the API server by its settings. Connects with the first call: an unreachable server does not
 * stop a start.
 * @throws ConfigError as `openKubeClient`
 */
export function openConfiguredClient(
  program: string,
  { kubeconfig, master, kubeClientQps, kubeClientBurst }: ConnectionSettings,
  options: Omit<KubeClientOptions, 'kubeconfig' | 'master' | 'qps' | 'burst' | 'userAgent'>,
): OpenKubeClient {
  return openKubeClient({
    ...options,
    ...(kubeconfig === '' ? {} : { kubeconfig }),
    ...(master === '' ? {} : { master }),
    qps: kubeClientQps,
    burst: kubeClientBurst,
    userAgent: `${program}/${release}`,
  });
}
