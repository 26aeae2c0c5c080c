import type { KubeConfigClass } from './access.ts';

/**
 * Loads the whole of client-node's KubeConfig: for {@link openKubeClient} where users come with a proxy, OIDC, Azure or
 * Google. It is loaded when one of them is met; lying unused in an executable's bundle it costs 8 MiB, loaded 20 more.
 */
export async function loadWholeKubeConfig(): Promise<KubeConfigClass> {
  const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
  return KubeConfig;
}
