import type { KubeConfigClass } from './access.ts';

/**
 * Loads the full KubeConfig class of client-node: for {@link openKubeClient} when users come with a proxy, OIDC, Azure
 * or Google. It is loaded on demand: unused in an executable's bundle it costs 8 MiB, loaded 20 more.
 */
export async function loadFullKubeConfig(): Promise<KubeConfigClass> {
  const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
  return KubeConfig;
}
